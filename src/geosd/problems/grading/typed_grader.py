r"""Judge answers of the paper's benchmarks: the gold answer's type chooses the grader.

An integer gold (DAPO-Math, AIME, AMC, most of MATH-500) is compared as an integer, exactly. Any
other gold is compared as a word, as a number, and then by math-verify. docs/grading.md has the
conventions and how often they agree with published verdicts.
"""

from __future__ import annotations

from typing import Literal

from geosd.problems.grading.answer_extraction import extract_answer
from geosd.problems.grading.answer_normalization import (
    NormalizedAnswer,
    as_words,
    normalize_answer,
    units_agree,
)
from geosd.problems.grading.exact_numbers import is_integer, read_number
from geosd.problems.grading.grader_interface import Reason, Verdict
from geosd.problems.grading.symbolic_pool import SymbolicPool

GraderMode = Literal["auto", "integer", "symbolic"]
# A longer answer is prose or a loop, and reading it costs more than it can bring.
LONGEST_ANSWER = 2000


def grade_response(
    response: str,
    gold: str,
    pool: SymbolicPool,
    *,
    grader: GraderMode = "auto",
    guess: bool = False,
) -> Verdict:
    """Judge a response by the final answer that it states and by the gold answer's type.

    Args:
        response: Its text, without special tokens.
        gold: The right answer.
        pool: Compares formulas; integers, words and numbers need no comparison by it.
        grader: `auto`: by the gold's type; `integer`: every gold is one; `symbolic`: answers to
            integer golds that are no number, such as `2^{10}`, are compared as formulas too.
        guess: Whether the last formula or number counts where no answer is stated.

    Raises:
        ValueError: `grader` is `integer` and the gold is not.
    """
    extracted = extract_answer(response, guess=guess)
    return grade_answer(extracted.text if extracted else "", gold, pool, grader=grader)


def grade_answer(
    answer: str, gold: str, pool: SymbolicPool, *, grader: GraderMode = "auto"
) -> Verdict:
    """Judge an extracted answer by the gold answer's type; arguments as of `grade_response`."""
    integer = is_integer(gold)
    if grader == "integer" and not integer:
        raise ValueError(
            f"the gold answer {gold!r} is not an integer; the integer grader allows only integers"
            " such as '7' or '-12'.\nHint: the grader 'auto' chooses by the type of each gold."
        )
    if not answer.strip():
        return Verdict(None, False, "no answer")
    if len(answer) > LONGEST_ANSWER:
        return Verdict(answer, False, "unreadable")
    bare = normalize_answer(gold), normalize_answer(answer)
    reason = _compare(*bare, integer, pool, grader)
    return Verdict(answer, reason == "correct", reason)


def _compare(
    gold: NormalizedAnswer,
    answer: NormalizedAnswer,
    integer: bool,
    pool: SymbolicPool,
    grader: GraderMode,
) -> Reason:
    if not units_agree(gold, answer):
        return "wrong answer"
    right, read_answer = read_number(gold.body), read_number(answer.body)
    if right is not None and read_answer is not None:
        # Exact for integers. A rounded decimal of a gold that is none goes on to math-verify.
        if right == read_answer:
            return "correct"
        if integer:
            return "wrong answer"
    if integer and grader != "symbolic":
        return "unreadable"
    if gold.body.replace(" ", "") == answer.body.replace(" ", ""):
        return "correct"
    word = as_words(gold.body)
    if word is not None:
        return "correct" if _same_word(word, as_words(answer.body)) else "wrong answer"
    outcome = pool.compare(gold.body, answer.body)
    return {"equal": "correct", "different": "wrong answer"}.get(outcome, outcome)


def _same_word(gold: str, answer: str | None) -> bool:
    """Words compare without case; single letters, which may be variables, with it."""
    if answer is None:
        return False
    if len(gold) == 1 or len(answer) == 1:
        return gold == answer
    return gold.lower() == answer.lower()


class TypedGrader:
    """Grader of the paper's benchmarks: the type of a gold answer chooses the comparison.

    Args:
        workers: Processes that compare formulas; integer golds start none.
        seconds: Limit on one comparison, in seconds.
    """

    def __init__(self, workers: int = 1, seconds: float = 5.0) -> None:
        """Start nothing yet; see `SymbolicPool`."""
        self._pool = SymbolicPool(workers, seconds)

    def __call__(self, response: str, gold: str) -> Verdict:
        """Judge a response by the final answer that it states; see `grade_response`."""
        return grade_response(response, gold, self._pool)

    def close(self) -> None:
        """End the processes that compare formulas for this grader."""
        self._pool.close()
