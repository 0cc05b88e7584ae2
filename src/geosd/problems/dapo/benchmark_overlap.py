"""Training problems that are also in a benchmark, word for word or nearly so."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from geosd.problems.dapo.near_duplicates import NearDuplicateIndex
from geosd.problems.dapo.raw_files import RawProblem
from geosd.problems.dapo.text_normalization import normalize_text


@dataclass(frozen=True)
class Overlap:
    """A training problem and the problem of a benchmark that it is, or nearly is.

    Attributes:
        benchmark: Name of the benchmark.
        benchmark_id: The problem of the benchmark.
        training_id: The training problem.
        kind: `exact`: the same normalised text; `near`: see `geosd.problems.dapo.near_duplicates`.
        ratio: Share of tokens in common; 1 for exact ones.
        same_answer: Whether the answers are written alike. DAPO turned answers that are no
            integers into such, so the same problem can have another answer.
    """

    benchmark: str
    benchmark_id: str
    training_id: str
    kind: Literal["exact", "near"]
    ratio: float
    same_answer: bool


def find_overlaps(
    training: Iterable[RawProblem], benchmarks: Mapping[str, Sequence[RawProblem]]
) -> list[Overlap]:
    """Every pair of a training problem and a problem of a benchmark that overlap.

    Args:
        training: Training problems.
        benchmarks: The problems of each benchmark, by name.

    Returns:
        The pairs, sorted by benchmark, its problem, and the training problem.
    """
    rows: dict[str, tuple[str, RawProblem]] = {}
    texts: dict[str, set[str]] = {}
    index = NearDuplicateIndex()
    for benchmark, problems in benchmarks.items():
        for row in problems:
            name = f"{benchmark}/{row.id}"
            rows[name] = (benchmark, row)
            texts.setdefault(normalize_text(row.text), set()).add(name)
            index.add(name, row.text)
    overlaps = []
    for row in training:
        exact = texts.get(normalize_text(row.text), set())
        ratios = {match.name: match.ratio for match in index.find(row.text)}
        for name in exact | ratios.keys():
            benchmark, other = rows[name]
            same = row.answer == other.answer
            kind, ratio = ("exact", 1.0) if name in exact else ("near", round(ratios[name], 4))
            overlaps.append(Overlap(benchmark, other.id, row.id, kind, ratio, same))
    return sorted(overlaps, key=lambda pair: (pair.benchmark, pair.benchmark_id, pair.training_id))
