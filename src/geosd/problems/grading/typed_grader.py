r"""Judge answers of the paper's benchmarks: numbers and words here, formulas in another process.

An integer gold (DAPO-Math, AIME, AMC, most of MATH-500) is compared as an integer, exactly. Any
other gold is compared as a word, as an exact number, and then by math-verify. docs/problems.md has
the conventions and how often they agree with published verdicts.

A formula can be one that no computer finishes, and sympy will try. So formulas are compared in a
limited process.
"""

import contextlib
import functools

from geosd.problems.grading import GradingVerdict, answer_comparison
from geosd.problems.grading.answer_comparison import GraderMode, compare_exactly
from geosd.problems.grading.answer_extraction import extract_answer
from geosd.problems.grading.exact_numbers import is_integer
from geosd.problems.limited_process import LimitedProcess, serve_limited_process
from geosd.problems.records import Reason

# Lengths are in characters. A response of the longest evaluation, 8192 tokens, has about 33,000.
LONGEST_RESPONSE = 1_000_000
# A longer answer is prose or a loop, and reading it costs more than it can bring.
LONGEST_ANSWER = 2000
# Of processor time. The slowest comparison of 3,763 published responses takes 0.7; docs/problems.md
# has what an evaluation of endless answers costs.
LIMIT_SECONDS = 2.0
# Outcomes that a grader keeps: samples of a problem repeat each other, and a long training must not
# grow by them.
REMEMBERED = 4096
MEGABYTES = 4096


class MissingMathError(RuntimeError):
    """A typed grader has a formula to compare, and math-verify is not installed."""


class TypedGrader(contextlib.AbstractContextManager):
    r"""Grader of the paper's benchmarks: the type of a gold answer chooses the comparison.

    Formulas are compared by a process, each for `seconds` of processor time at most, which starts
    when it is first needed: integers, fractions and words start none. Any thread may ask.

    Example:
        >>> with TypedGrader() as grader:
        ...     grader(r"so \boxed{x+1}", "1+x").reason
        'correct'
    """

    def __init__(self, seconds: float = LIMIT_SECONDS) -> None:
        if seconds <= 0:
            raise ValueError(
                f"{seconds} seconds for a formula; allowed is more than 0.\nHint: the default is 2."
            )
        self._process = LimitedProcess(__name__, seconds, patience=30 * seconds + 30)
        self._outcome = functools.lru_cache(REMEMBERED)(self._compare)

    def __call__(self, response: str, gold: str) -> GradingVerdict:
        """Judge a response; see `grade_typed_response`."""
        return grade_typed_response(response, gold, self)

    def compare(self, gold: str, answer: str) -> Reason:
        """Compare an answer with the gold in the process; MissingMathError if it cannot."""
        outcome = self._outcome(gold, answer)
        if outcome is None:
            raise MissingMathError(
                f"the gold answer {gold[:80]!r} is a formula; comparing it needs math-verify,"
                " which is not installed.\nHint: pip install 'geosd[math]'; integer answers need"
                " nothing."
            )
        return outcome

    def close(self) -> None:
        """End the process of this grader."""
        self._process.stop()

    def __exit__(self, *_: object) -> None:
        self.close()

    def _compare(self, gold: str, answer: str) -> Reason | None:
        try:
            return self._process.ask(gold, answer)
        except TimeoutError:
            return "timeout"
        except ChildProcessError:
            return "crash"


def grade_typed_response(
    response: str,
    gold: str,
    typed: TypedGrader,
    *,
    grader: GraderMode = "auto",
    guess: bool = False,
) -> GradingVerdict:
    """Judge a response by the final answer that it states and by the gold answer's type.

    A response above `LONGEST_RESPONSE` or a gold above `LONGEST_ANSWER` is unreadable. The grader
    `symbolic` compares answers to integer golds that are no number as formulas too; with `guess`
    the last formula or number counts where no answer is stated.
    """
    if len(response) > LONGEST_RESPONSE or len(gold) > LONGEST_ANSWER:
        return GradingVerdict(None, False, "unreadable")
    answer = extract_answer(response, guess=guess)
    return grade_typed_answer(answer or "", gold, typed, grader=grader)


def grade_typed_answer(
    answer: str, gold: str, typed: TypedGrader, *, grader: GraderMode = "auto"
) -> GradingVerdict:
    """Judge an extracted answer; one above `LONGEST_ANSWER` is unreadable."""
    if not answer.strip():
        return GradingVerdict(None, False, "no answer")
    if len(answer) > LONGEST_ANSWER or len(gold) > LONGEST_ANSWER:
        return GradingVerdict(answer, False, "unreadable")
    reason = compare_exactly(gold, answer)
    if reason is None:
        undecided = is_integer(gold) and grader != "symbolic"
        reason = "unreadable" if undecided else typed.compare(gold, answer)
    return GradingVerdict(answer, reason == "correct", reason)


def _compare(gold: str, answer: str) -> Reason | None:
    """The comparison in the process; None where math-verify is not installed."""
    try:
        return answer_comparison.compare_answers(gold, answer)
    except ImportError:
        return None


if __name__ == "__main__":
    serve_limited_process(_compare, MEGABYTES, "x+1", "1+x")
