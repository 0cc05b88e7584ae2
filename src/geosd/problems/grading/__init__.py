"""The interface of graders, and the judging of a response in pool, rewards and evaluation alike."""

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Protocol

from geosd.problems.records import Reason

UNDECIDED: tuple[Reason, ...] = ("unreadable", "timeout", "crash")
"""Reasons of verdicts that count as wrong although no comparison said so."""

NOT_COMPARED: tuple[Reason, ...] = ("truncated", "no answer", *UNDECIDED)
"""Reasons of responses that count as wrong without having been compared with the right answer."""


@dataclass(frozen=True)
class GradingVerdict:
    """A grader's result for a response: its final answer, if any, whether it is right, and why.

    `unreadable` is an answer that the grader could not read; `timeout`: the comparison used up its
    processor time; `crash`: it brought its process down. Whoever reports counts these `UNDECIDED`.
    """

    answer: str | None
    correct: bool
    reason: Reason


class Grader(Protocol):
    """Interface of graders; the program that makes a grader closes it."""

    def __call__(self, response: str, gold: str) -> GradingVerdict:
        """Judge a response's text, without special tokens, by the right answer."""
        ...

    def close(self) -> None:
        """End what the grader has started."""
        ...


def judge_response(
    response: str,
    gold: str,
    grade: Callable[[str, str], GradingVerdict],
    *,
    truncated: bool,
    opened_thought: bool = False,
) -> GradingVerdict:
    """A grader's verdict on a response; where the cap ended it, it has no answer, whatever it says.

    After a prompt that ended in `<think>` (`opened_thought`) it begins inside a thought. Source:
    the paper, Evaluation: "strict avg@16 scoring under a 8192-token response cap".
    """
    if truncated:
        return GradingVerdict(None, False, "truncated")
    return grade("<think>" * opened_thought + response, gold)


def grading_reason_counts(reasons: Iterable[Reason], noun: str = "responses") -> str:
    """How many responses there are of each reason, in words for a log or a terminal."""
    counts = Counter(reasons)
    each = ", ".join(f"{number} {reason}" for reason, number in counts.most_common())
    text = f"{counts.total()} {noun}: {each}"
    if undecided := sum(counts[reason] for reason in UNDECIDED):
        names = ", ".join(UNDECIDED)
        text += f"\n{undecided} count as wrong without having been found wrong ({names})"
    return text
