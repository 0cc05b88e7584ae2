"""Habits of responses of the search world, counted in their texts."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator

from geosd.problems.records import SampleRecord
from geosd.problems.search.equations import MODULUS

HABITS = {
    "first_low": "first x below 6",
    "first_high": "first x from 12",
    "repeats": "trials written twice",
    "checks": "passing values checked",
    "retries": "failed values retried",
    "truncated": "truncated",
}
"""Each habit by its name in the table of habits, and in words."""

_TWO = "[0-9]{1,2} [0-9]{1,2}"
_TRIAL = re.compile(
    rf"(?P<x>[0-9]{{1,3}}) {_TWO}(?P<repeat> {_TWO})? (?:(?P<fails>;)|(?P<passes>ok))"
    rf"(?:(?<=ok)(?P<check> {_TWO} (?:(?P<check_fails>;)|ok)))?(?P<answer> A:)?(?: |$)"
)
"""A trial, its verdict, the check of a value that passes, and whether the answer follows."""


def read_habit_trials(text: str) -> Iterator[re.Match[str]]:
    """The trials of a response up to its answer, its cut, or the first that is no trial.

    Example:
        >>> [trial["x"] for trial in read_habit_trials("7 10 13 ; 3 2 5 ok 5 6 ; 11 2 5 ok A: 11")]
        ['7', '3', '11']
    """
    text, at = " ".join(text.split()), 0
    while trial := _TRIAL.match(text, at):
        yield trial
        at = len(text) if trial["answer"] else trial.end()


def habit_shares(samples: Iterable[SampleRecord]) -> dict[str, float]:
    """How often responses have each habit, in per cent of the occasions; none without occasion.

    Occasions of "first_low", "first_high" and "truncated" are responses, of "repeats" trials, of
    "checks" values that pass the first equation, of "retries" trials after a failed one. A retry
    is the trial of a value that failed before in the same response.
    """
    had, occasions = Counter[str](), Counter[str]()

    def count(habit: str, has: object) -> None:
        had[habit] += bool(has)
        occasions[habit] += 1

    for sample in samples:
        count("truncated", sample.finish == "length")
        failed: set[str] = set()
        for number, trial in enumerate(read_habit_trials(sample.text)):
            if number == 0:
                count("first_low", int(trial["x"]) % MODULUS < 6)
                count("first_high", int(trial["x"]) % MODULUS >= 12)
            if failed:
                count("retries", trial["x"] in failed)
            count("repeats", trial["repeat"])
            if trial["check"] or (trial["passes"] and trial["answer"]):
                count("checks", trial["check"])
            if trial["fails"] or trial["check_fails"]:
                failed.add(trial["x"])
    return {name: 100 * had[name] / occasions[name] for name in HABITS if occasions[name]}
