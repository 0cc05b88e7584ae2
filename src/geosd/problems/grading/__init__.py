"""The interface of graders: a grader is called with a response, and returns a verdict."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from geosd.problems.records import Reason

UNDECIDED: tuple[Reason, ...] = ("unreadable", "timeout", "crash")
"""Reasons of verdicts that count as wrong although no comparison said so."""


@dataclass(frozen=True)
class Verdict:
    """What a grader returns for a response: its answer, whether that is right, and why.

    Attributes:
        answer: The final answer; None if the response states none.
        correct: Whether it equals the gold answer. False for every reason but `correct`.
        reason: Why. `unreadable`: an answer that the grader could not read; `timeout`: the
            comparison used up its processor time; `crash`: it brought its process down. These
            three are `UNDECIDED`, so whoever reports counts them.
    """

    answer: str | None
    correct: bool
    reason: Reason


class Grader(Protocol):
    """Interface of graders; the program that makes a grader closes it."""

    def __call__(self, response: str, gold: str) -> Verdict:
        """Judge a response's text, without special tokens, by the right answer."""
        ...

    def close(self) -> None:
        """End what the grader has started; part of the interface of graders."""
        ...
