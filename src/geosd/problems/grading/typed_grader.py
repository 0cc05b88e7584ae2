r"""Judge answers of the paper's benchmarks: the gold answer's type chooses the grader.

An integer gold (DAPO-Math, AIME, AMC, most of MATH-500) is compared as an integer, exactly. Any
other gold is compared as a word, as a number, and then by math-verify. docs/grading.md has the
conventions and how often they agree with published verdicts.
"""

from __future__ import annotations

from geosd.problems.grading.answer_comparison import GraderMode, compare_exactly
from geosd.problems.grading.answer_extraction import extract_answer
from geosd.problems.grading.exact_numbers import is_integer
from geosd.problems.grading.grader_interface import Verdict
from geosd.problems.grading.grading_pool import GradingPool, WorkerEndedError

# Lengths are in characters. A response of the longest evaluation, 8192 tokens, has about 33,000.
LONGEST_RESPONSE = 1_000_000
# To this length extraction takes at most about 0.1 s, whatever the response is.
LONGEST_WITHOUT_CLOCK = 50_000
# A longer answer is prose or a loop, and reading it costs more than it can bring.
LONGEST_ANSWER = 2000


def grade_response(
    response: str,
    gold: str,
    pool: GradingPool,
    *,
    grader: GraderMode = "auto",
    guess: bool = False,
) -> Verdict:
    """Judge a response by the final answer that it states and by the gold answer's type.

    Args:
        response: Its text, without special tokens; above `LONGEST_RESPONSE` it is unreadable.
        gold: The right answer; above `LONGEST_ANSWER` nothing can be compared with it.
        pool: Extracts and compares in processes of its own, under a clock. An integer gold needs
            it only for a response above `LONGEST_WITHOUT_CLOCK`.
        grader: `auto`: by the gold's type; `integer`: every gold is one; `symbolic`: answers to
            integer golds that are no number, such as `2^{10}`, are compared as formulas too.
        guess: Whether the last formula or number counts where no answer is stated.

    Raises:
        ValueError: `grader` is `integer` and the gold is not.
    """
    _check(gold, grader)
    if len(response) > LONGEST_RESPONSE or len(gold) > LONGEST_ANSWER:
        return Verdict(None, False, "unreadable")
    if is_integer(gold) and len(response) <= LONGEST_WITHOUT_CLOCK:
        found = extract_answer(response, guess=guess)
        answer = found.text if found else None
    else:
        try:
            answer = pool.extract(response, guess)
        except WorkerEndedError as ended:
            return Verdict(None, False, ended.reason)
    return grade_answer(answer or "", gold, pool, grader=grader)


def grade_answer(
    answer: str, gold: str, pool: GradingPool, *, grader: GraderMode = "auto"
) -> Verdict:
    """Judge an extracted answer by the gold answer's type; arguments as of `grade_response`.

    An answer or a gold above `LONGEST_ANSWER` is unreadable.
    """
    _check(gold, grader)
    if not answer.strip():
        return Verdict(None, False, "no answer")
    if len(answer) > LONGEST_ANSWER or len(gold) > LONGEST_ANSWER:
        return Verdict(answer, False, "unreadable")
    reason = compare_exactly(gold, answer) if is_integer(gold) else None
    if reason is None:
        undecided = is_integer(gold) and grader != "symbolic"
        reason = "unreadable" if undecided else pool.compare(gold, answer)
    return Verdict(answer, reason == "correct", reason)


def _check(gold: str, grader: GraderMode) -> None:
    if grader == "integer" and not is_integer(gold):
        raise ValueError(
            f"the gold answer {gold[:80]!r} is not an integer; the integer grader allows only"
            " integers such as '7' or '-12'.\nHint: the grader 'auto' chooses by the type of each"
            " gold."
        )


class TypedGrader:
    """Grader of the paper's benchmarks: the type of a gold answer chooses the comparison.

    Args:
        workers: Processes that grade under a clock; integer golds start none, unless a response is
            longer than `LONGEST_WITHOUT_CLOCK`.
        seconds: Limit on one extraction or comparison, in seconds.
    """

    def __init__(self, workers: int = 1, seconds: float = 5.0) -> None:
        """Start nothing yet; see `GradingPool`."""
        self._pool = GradingPool(workers, seconds)

    def __call__(self, response: str, gold: str) -> Verdict:
        """Judge a response by the final answer that it states; see `grade_response`."""
        return grade_response(response, gold, self._pool)

    def close(self) -> None:
        """End the processes of this grader."""
        self._pool.close()
