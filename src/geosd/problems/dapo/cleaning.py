"""Which rows are English problems with one sound answer, each text once; and why others are not."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from geosd.problems.dapo.raw_files import DamagedRowError, RawProblem
from geosd.problems.dapo.text_normalization import is_english, normalize_text

# Larger integers have been through a double somewhere upstream: ...842 has become ...848.
LARGEST = 2**53

_INTEGER = re.compile(r"[+-]?[0-9]+")


@dataclass(frozen=True)
class CleanedProblems:
    """The rows of DAPO-Math that cleaning keeps, and how many it drops for which reason.

    Attributes:
        rows: Sound rows by normalised text, sorted by it. Of rows with the same text and answer
            the one with the smallest id is kept; the answer is in its shortest form.
        excluded: Rows dropped, by reason, in the order in which the reasons are tried. They and
            `rows` add up to all rows.
        conflicts: Ids of the rows that ask the same and answer differently, a tuple for each text.
    """

    rows: Mapping[str, RawProblem]
    excluded: Mapping[str, int]
    conflicts: Sequence[tuple[str, ...]]


def clean_problems(rows: Iterable[RawProblem]) -> CleanedProblems:
    """Clean rows: drop copies, other languages, unsound answers and repeated texts, in this order.

    Rows with the same text and different answers are all dropped: nothing says which answer is
    right. The result does not depend on the order of the rows.

    Raises:
        DamagedRowError: Two different rows have the same id.
    """
    rows = list(rows)
    distinct = _without_copies(rows)
    english = [row for row in distinct if is_english(row.text)]
    integers = [row for row in english if _INTEGER.fullmatch(row.answer.strip())]
    sound = [row for row in integers if abs(int(row.answer)) <= LARGEST]
    groups = _by_text(sound)
    conflicts = {text: g for text, g in groups.items() if len({row.answer for row in g}) > 1}
    kept = {text: group[0] for text, group in groups.items() if text not in conflicts}
    in_conflict = sum(map(len, conflicts.values()))
    return CleanedProblems(
        rows=kept,
        excluded={
            "copy of a row": len(rows) - len(distinct),
            "not English": len(distinct) - len(english),
            "answer not an integer": len(english) - len(integers),
            "answer beyond 2^53": len(integers) - len(sound),
            "same text, different answers": in_conflict,
            "repeated text": len(sound) - in_conflict - len(kept),
        },
        conflicts=[tuple(row.id for row in group) for group in conflicts.values()],
    )


def _without_copies(rows: Sequence[RawProblem]) -> list[RawProblem]:
    """Each id once. The set has been published with every row about a hundred times."""
    by_id: dict[str, RawProblem] = {}
    for row in rows:
        if (known := by_id.setdefault(row.id, row)) != row:
            raise DamagedRowError(
                f"the id {row.id!r} names two different rows: answer {known.answer!r} to"
                f" {known.text[:60]!r}, and {row.answer!r} to {row.text[:60]!r}; allowed are equal"
                " copies of a row.\nHint: ids tell rows apart; give each row its own."
            )
    return list(by_id.values())


def _by_text(rows: Iterable[RawProblem]) -> dict[str, list[RawProblem]]:
    """Rows by normalised text, answers as integers; texts and the ids of each sorted."""
    groups: defaultdict[str, list[RawProblem]] = defaultdict(list)
    for row in rows:
        answer = str(int(row.answer))
        groups[normalize_text(row.text)].append(RawProblem(row.id, row.text, answer))
    return {text: sorted(groups[text], key=lambda row: row.id) for text in sorted(groups)}
