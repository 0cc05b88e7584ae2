"""When two problems are the same or nearly, and which training problems are in a benchmark.

Two texts are near if they share a run of `RUN` tokens and at least `RATIO` of their tokens.
"""

import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from geosd.problems.dapo.raw_files import RawProblem

RUN = 8
RATIO = 0.8

_SIGNS = str.maketrans(
    {
        **dict.fromkeys("\u2018\u2019\u201a\u201b\u2032", "'"),
        **dict.fromkeys("\u201c\u201d\u201e\u201f\u2033", '"'),
        **dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2015\u2212", "-"),
        "\u2217": "*",
        "\u3002": ".",
    }
)
_WHITE_SPACE = dict.fromkeys([*range(33), 127])  # ASCII's white space and control characters
_TOKEN = re.compile(r"[^\W\d_]+|\d+")


def normalize_for_duplicates(text: str) -> str:
    """The normalized text of a problem: no white space, no case, no variants of signs.

    Compatibility forms (ligatures, full-width signs) become plain ones, curly quotes straight,
    dashes and minus signs hyphens; invisible characters go. White space goes altogether, because
    copies of a problem differ in it inside formulas, where it means nothing. Normalising twice
    changes nothing more. Two problems with the same normalized text are the same problem.

    Example:
        >>> normalize = normalize_for_duplicates
        >>> normalize("Find $ F( 1 ) $\u200b.") == normalize("find $f(1)$.")
        True
    """
    if text.isascii():
        return text.casefold().translate(_WHITE_SPACE)
    # Each of these can bring about what another removes, so they are repeated to the fixed point.
    while (once := _normalize_once(text)) != text:
        text = once
    return text


def _normalize_once(text: str) -> str:
    folded = unicodedata.normalize("NFKC", text).casefold()
    # Again: to fold a letter can take its accent from it.
    folded = unicodedata.normalize("NFKC", folded).translate(_SIGNS)
    kept = (c for c in folded if unicodedata.category(c) not in ("Cc", "Cf"))
    return "".join("".join(kept).split())


def duplicate_word_tokens(text: str) -> list[str]:
    r"""The words, LaTeX's commands too, and numbers of a normalized text; signs are left out.

    Example:
        >>> duplicate_word_tokens("Find $\\frac{x_1}{12}$.")
        ['find', 'frac', 'x', '1', '12']
    """
    return _TOKEN.findall(unicodedata.normalize("NFKC", text).casefold())


def duplicate_token_ratio(one: Counter[str], other: Counter[str]) -> float:
    """How near two texts are: Dice's coefficient of their tokens, 2 |A and B| / (|A| + |B|).

    It bounds the ratio of a longest-match comparison from above, so a sentence that was moved
    does not hide a copy; the run of tokens in common rules out chance.
    """
    total = one.total() + other.total()
    return 2 * (one & other).total() / total if total else 0.0


def _token_runs(words: list[str]) -> Iterator[tuple[str, ...]]:
    """Runs of `RUN` tokens, which near duplicates share; a shorter text is one run."""
    if words:
        for start in range(max(1, len(words) - RUN + 1)):
            yield tuple(words[start : start + RUN])


class NearDuplicateIndex:
    """An index of texts that finds near duplicates; only texts with a common run are compared."""

    def __init__(self) -> None:
        self._bags: dict[str, Counter[str]] = {}
        self._named: defaultdict[tuple[str, ...], set[str]] = defaultdict(set)

    def add(self, name: str, text: str) -> None:
        """Add a text to the index of near duplicates, under a name of its own."""
        words = duplicate_word_tokens(text)
        self._bags[name] = Counter(words)
        for run in _token_runs(words):
            self._named[run].add(name)

    def find(self, text: str) -> dict[str, float]:
        """Names of the near duplicates of a text -> `duplicate_token_ratio`, the nearest first."""
        words = duplicate_word_tokens(text)
        candidates: set[str] = set()
        for run in _token_runs(words):
            candidates |= self._named.get(run, set())
        bag = Counter(words)
        ratios = {name: duplicate_token_ratio(bag, self._bags[name]) for name in sorted(candidates)}
        near = {name: ratio for name, ratio in ratios.items() if ratio >= RATIO}
        return dict(sorted(near.items(), key=lambda pair: -pair[1]))


@dataclass(frozen=True)
class DuplicateOverlap:
    """A training problem that is, exactly or nearly, a duplicate of a benchmark's problem.

    `near` is as `NearDuplicateIndex` finds it; `ratio` is the share of tokens in common. DAPO
    turned answers that are no integers into such, so the same problem can have another answer.
    """

    benchmark: str
    benchmark_id: str
    training_id: str
    kind: Literal["exact", "near"]
    ratio: float
    same_answer: bool


def find_duplicate_overlaps(
    training: Iterable[RawProblem], benchmarks: Mapping[str, Sequence[RawProblem]]
) -> list[DuplicateOverlap]:
    """Every exact or near duplicate of a benchmark's problem, sorted by it and the training's."""
    rows: dict[str, tuple[str, RawProblem]] = {}
    texts: dict[str, set[str]] = {}
    index = NearDuplicateIndex()
    for benchmark, problems in benchmarks.items():
        for row in problems:
            name = f"{benchmark}/{row.id}"
            rows[name] = (benchmark, row)
            texts.setdefault(normalize_for_duplicates(row.text), set()).add(name)
            index.add(name, row.text)
    overlaps = []
    for row in training:
        exact = texts.get(normalize_for_duplicates(row.text), set())
        ratios = index.find(row.text)
        for name in exact | ratios.keys():
            benchmark, other = rows[name]
            same = row.answer == other.answer
            kind, ratio = ("exact", 1.0) if name in exact else ("near", round(ratios[name], 4))
            overlaps.append(DuplicateOverlap(benchmark, other.id, row.id, kind, ratio, same))
    return sorted(overlaps, key=lambda pair: (pair.benchmark, pair.benchmark_id, pair.training_id))
