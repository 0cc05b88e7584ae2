"""Problems that are nearly the same, and training problems that are also in a benchmark.

Two texts are near if they share a run of `RUN` tokens and at least `RATIO` of their tokens.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from geosd.problems.dapo.raw_files import RawProblem
from geosd.problems.dapo.text_normalization import normalize_text, word_tokens

RUN = 8
RATIO = 0.8


class NearDuplicate(NamedTuple):
    """A near duplicate of a text: the name of the indexed text, and their `token_ratio`."""

    name: str
    ratio: float


def token_ratio(one: Counter[str], other: Counter[str]) -> float:
    """How near two texts are: Dice's coefficient of their tokens, 2 |A and B| / (|A| + |B|).

    It bounds the ratio of a longest-match comparison from above, so a sentence that was moved
    does not hide a copy; the run of tokens in common rules out chance.
    """
    total = one.total() + other.total()
    return 2 * (one & other).total() / total if total else 0.0


def token_runs(words: list[str]) -> Iterator[tuple[str, ...]]:
    """Runs of `RUN` tokens, which near duplicates share; a shorter text is one run."""
    if words:
        for start in range(max(1, len(words) - RUN + 1)):
            yield tuple(words[start : start + RUN])


class NearDuplicateIndex:
    """An index of texts that finds near duplicates; only texts with a common run are compared."""

    def __init__(self) -> None:
        """Start without texts."""
        self._bags: dict[str, Counter[str]] = {}
        self._named: defaultdict[tuple[str, ...], set[str]] = defaultdict(set)

    def add(self, name: str, text: str) -> None:
        """Add a text to the index of near duplicates, under a name of its own."""
        words = word_tokens(text)
        self._bags[name] = Counter(words)
        for run in token_runs(words):
            self._named[run].add(name)

    def find(self, text: str) -> list[NearDuplicate]:
        """The near duplicates of a text, the nearest first, equally near ones by name."""
        words = word_tokens(text)
        candidates: set[str] = set()
        for run in token_runs(words):
            candidates |= self._named.get(run, set())
        bag = Counter(words)
        matches = [NearDuplicate(n, token_ratio(bag, self._bags[n])) for n in candidates]
        near = [match for match in matches if match.ratio >= RATIO]
        return sorted(near, key=lambda match: (-match.ratio, match.name))


@dataclass(frozen=True)
class Overlap:
    """A training problem that is, exactly or nearly, a duplicate of a benchmark's problem.

    Attributes:
        benchmark: Name of the benchmark.
        benchmark_id: The problem of the benchmark.
        training_id: The training problem.
        kind: `exact`: the same normalised text; `near`: as `NearDuplicateIndex` finds them.
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
    """Every training problem that is an exact or near duplicate of a benchmark's problem.

    The pairs are sorted by benchmark, its problem, and the training problem.
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
