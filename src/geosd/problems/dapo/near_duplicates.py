"""Problems that are nearly the same: a run of tokens in common, and most tokens in common."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

from geosd.problems.dapo.text_normalization import word_tokens

RUN = 8
RATIO = 0.8


@dataclass(frozen=True)
class NearDuplicate:
    """A text of an index that is nearly the given one.

    Attributes:
        name: Of the text in the index.
        ratio: Share of tokens in common, see `token_ratio`.
    """

    name: str
    ratio: float


def token_ratio(one: Counter[str], other: Counter[str]) -> float:
    """Dice's coefficient of two bags of tokens: 2 |A and B| / (|A| + |B|), in [0, 1].

    It bounds the ratio of a longest-match comparison from above, so a sentence that was moved
    does not hide a copy; the run of tokens in common rules out chance.
    """
    total = one.total() + other.total()
    return 2 * (one & other).total() / total if total else 0.0


def token_runs(words: list[str]) -> Iterator[tuple[str, ...]]:
    """All runs of `RUN` tokens; a shorter text is one run, a text without tokens has none."""
    if words:
        for start in range(max(1, len(words) - RUN + 1)):
            yield tuple(words[start : start + RUN])


class NearDuplicateIndex:
    """An index of texts that finds those near to another text without comparing all pairs.

    Two texts are near if they share a run of `RUN` tokens and their token ratio is at least
    `RATIO`. An inverted index finds the texts of a run, so only texts with a common run
    are compared.
    """

    def __init__(self) -> None:
        """Start without texts."""
        self._bags: dict[str, Counter[str]] = {}
        self._named: defaultdict[tuple[str, ...], set[str]] = defaultdict(set)

    def add(self, name: str, text: str) -> None:
        """Add a text under a name of its own."""
        words = word_tokens(text)
        self._bags[name] = Counter(words)
        for run in token_runs(words):
            self._named[run].add(name)

    def find(self, text: str) -> list[NearDuplicate]:
        """The texts near to `text`, the nearest first, equally near ones by name."""
        words = word_tokens(text)
        candidates: set[str] = set()
        for run in token_runs(words):
            candidates |= self._named.get(run, set())
        bag = Counter(words)
        ratios = ((name, token_ratio(bag, self._bags[name])) for name in candidates)
        matches = [NearDuplicate(name, ratio) for name, ratio in ratios if ratio >= RATIO]
        return sorted(matches, key=lambda match: (-match.ratio, match.name))
