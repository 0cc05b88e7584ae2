"""Judge a response as pool, reward and evaluation do: one that was cut off has no answer."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable

from geosd.problems.grading import UNDECIDED, Verdict
from geosd.problems.records import Reason

NOT_COMPARED: tuple[Reason, ...] = ("truncated", "no answer", *UNDECIDED)
"""Reasons of responses that count as wrong without having been compared with the right answer."""


def judge_response(
    response: str,
    gold: str,
    grade: Callable[[str, str], Verdict],
    *,
    truncated: bool,
    opened_thought: bool = False,
) -> Verdict:
    """Judge a response; where the cap ended it, it has no answer, whatever it says before.

    Args:
        response: Its text, without special tokens.
        gold: The right answer.
        grade: Judges a whole response, as a `Grader` does.
        truncated: Whether the cap ended the response.
        opened_thought: Whether the prompt ended in `<think>`, so that the response begins inside a
            thought.

    Source: the paper, Evaluation: "strict avg@16 scoring under a 8192-token response cap".
    """
    if truncated:
        return Verdict(None, False, "truncated")
    return grade("<think>" * opened_thought + response, gold)


def reason_counts(reasons: Iterable[Reason], noun: str = "responses") -> str:
    """How many responses there are of each reason, in words for a log or a terminal."""
    counts = Counter(reasons)
    each = ", ".join(f"{number} {reason}" for reason, number in counts.most_common())
    text = f"{counts.total()} {noun}: {each}"
    if undecided := sum(counts[reason] for reason in UNDECIDED):
        names = ", ".join(UNDECIDED)
        text += f"\n{undecided} count as wrong without having been found wrong ({names})"
    return text
