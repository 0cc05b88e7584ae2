"""The paper's splits: cleaned rows, and a card that says what became of every row."""

import dataclasses
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from geosd.problems.dapo.near_duplicates import (
    NearDuplicateIndex,
    find_duplicate_overlaps,
    normalize_for_duplicates,
)
from geosd.problems.dapo.raw_files import DamagedRawRowError, RawFiles, RawProblem
from geosd.problems.problem_splits import ProblemSplits
from geosd.problems.records import Problem
from geosd.seeds import seed_of

# Larger integers have been through a double somewhere upstream: ...842 has become ...848.
LARGEST = 2**53
_INTEGER = re.compile(r"[+-]?[0-9]+")
# Letters of scripts that no English problem is written in. Full-width signs, ligatures, curly
# quotes, accented and Greek letters, and even an ideographic full stop lie outside.
_FOREIGN = re.compile(
    "["
    "\u0400-\u1cff"  # Cyrillic to Vedic: every alphabet between Greek and the phonetic extensions
    "\u2e80-\u2fdf"  # radicals
    "\u3040-\u31ff"  # kana, bopomofo, Hangul compatibility letters
    "\u3400-\u4dbf\u4e00-\ua4cf"  # Chinese characters, Yi
    "\uac00-\ud7ff"  # Hangul
    "\uf900-\ufaff"  # compatibility ideographs
    "\uff66-\uffdc"  # half-width kana and Hangul
    "\U00020000-\U0003ffff"  # rarer Chinese characters
    "]"
)


def clean_and_split(raw: RawFiles, settings: Mapping[str, Any]) -> ProblemSplits:
    """Draw the paper's splits of DAPO-Math: clean its rows, compare them with the benchmarks, draw.

    A row's place in the draw is a hash of its text and the seed: the order of the rows does not
    matter. Test problems are drawn first, so a larger training set never changes the test sets.
    Settings are those of `draw_splits` and `overlaps`: `exclude` draws no problem that is in a
    benchmark or nearly so, and none that is nearly one of another split; `keep` draws and only
    reports them.

    Source: The paper's appendix "Data and privileged context" and, for sizes, "Evaluation" and
    "Baselines".
    """
    cleaned = clean_problems(raw.training)
    exclude = settings["overlaps"] == "exclude"
    eligible, overlaps = split_without_overlaps(cleaned.rows.values(), raw.benchmarks, exclude)
    drawn = draw_splits(eligible, raw.benchmarks, settings, skip_near=exclude)
    card = {
        "files": dict(raw.sha256),
        "rows": len(raw.training),
        "excluded": {**cleaned.excluded, "in a benchmark": len(cleaned.rows) - len(eligible)},
        "eligible": len(eligible),
        "same text, different answers": [list(group) for group in cleaned.conflicts],
        **overlaps,
        **drawn.card,
    }
    return dataclasses.replace(drawn, card=card)


def split_without_overlaps(
    rows: Iterable[RawProblem], benchmarks: Mapping[str, Sequence[RawProblem]], exclude: bool
) -> tuple[list[RawProblem], dict[str, Any]]:
    """The problems that are in no benchmark, nor nearly; and what a card says of the others.

    The card names each overlap, and counts the problems of each benchmark that have one. Without
    `exclude` all problems stay.
    """
    rows = list(rows)
    overlapping = find_duplicate_overlaps(rows, benchmarks)
    left_out = {pair.training_id for pair in overlapping} if exclude else set()
    copied = {(pair.benchmark, pair.benchmark_id) for pair in overlapping}
    by_benchmark = Counter(benchmark for benchmark, _ in copied)
    card = {
        "benchmark problems in the training set": dict(sorted(by_benchmark.items())),
        "overlaps": [dataclasses.asdict(pair) for pair in overlapping],
    }
    return [row for row in rows if row.id not in left_out], card


def draw_splits(
    eligible: Sequence[RawProblem],
    benchmarks: Mapping[str, Sequence[RawProblem]],
    settings: Mapping[str, Any],
    skip_near: bool,
) -> ProblemSplits:
    """Draw the splits of DAPO-Math's problems, none of them twice, and cut the benchmarks.

    Settings are the problems of each split, `train`, `select_train`, `select_validation`,
    `test_id`, `test_per_benchmark` (None takes all), and the draw's `seed`. `skip_near` passes over
    a problem that is nearly one of an earlier split; otherwise the card only reports it. ValueError
    if there are too few problems.
    """
    seed = settings["seed"]
    sizes = {"id": settings["test_id"]}
    sizes |= {name: settings[name] for name in ("select_train", "select_validation", "train")}
    splits, near = _draw(_ranked(eligible, seed), sizes, skip=skip_near)
    benchmarks = {
        name: _cut_benchmark(name, rows, settings["test_per_benchmark"], seed)
        for name, rows in benchmarks.items()
    }
    return ProblemSplits(
        train=_problems("train", splits["train"]),
        select=(
            *_problems("select_train", splits["select_train"]),
            *_problems("select_validation", splits["select_validation"]),
        ),
        test=(
            *_problems("id", splits["id"]),
            *(problem for name, rows in benchmarks.items() for problem in _problems(name, rows)),
        ),
        card={
            "near another split": near,
            "kept": {name: len(rows) for name, rows in {**splits, **benchmarks}.items()},
        },
    )


def _ranked(rows: Sequence[RawProblem], seed: int) -> list[RawProblem]:
    return sorted(
        rows, key=lambda row: seed_of(seed, "problems", normalize_for_duplicates(row.text))
    )


def _draw(
    ranked: Sequence[RawProblem], sizes: Mapping[str, int], *, skip: bool
) -> tuple[dict[str, list[RawProblem]], list[dict[str, Any]]]:
    """Fill the splits one after another; and the problems near to one of an earlier split."""
    splits: dict[str, list[RawProblem]] = {name: [] for name in sizes}
    near_drawn: list[dict[str, Any]] = []
    drawn, candidates = NearDuplicateIndex(), iter(ranked)
    for name, size in sizes.items():
        while len(splits[name]) < size:
            row = next(candidates, None)
            if row is None:
                raise ValueError(
                    f"{len(ranked)} problems fill only {len(splits[name])} of the {size} wanted for"
                    f" {name!r}; wanted are {sum(sizes.values())} in all.\nHint: add"
                    " problems, or lower data.train, data.select_train, data.select_validation or"
                    " data.test_id in params.yaml."
                )
            if near := drawn.find(row.text):
                other, ratio = next(iter(near.items()))
                near_drawn.append(
                    {"problem": row.id, "drawn problem": other, "ratio": round(ratio, 4)}
                )
                if skip:
                    continue
            splits[name].append(row)
        for row in splits[name]:
            drawn.add(row.id, row.text)
    return splits, near_drawn


def _cut_benchmark(
    name: str, rows: Sequence[RawProblem], number: int | None, seed: int
) -> Sequence[RawProblem]:
    """A benchmark whole and in its order, or a number of its problems."""
    if number is None:
        return rows
    if number > len(rows):
        raise ValueError(
            f"benchmark {name!r} has {len(rows)} problems, fewer than the {number} wanted.\nHint:"
            " data.test_per_benchmark: null takes every benchmark whole."
        )
    return _ranked(rows, seed)[:number]


def _problems(benchmark: str, rows: Sequence[RawProblem]) -> tuple[Problem, ...]:
    return tuple(Problem(row.id, benchmark, row.text, row.answer) for row in rows)


@dataclass(frozen=True)
class _CleanedProblems:
    """The rows of DAPO-Math that cleaning keeps, and how many it drops for which reason.

    `rows` are by normalised text, sorted by it; of one text and answer the smallest id is kept, the
    answer in its shortest form. `excluded` counts rows by reason, in the order in which reasons are
    tried; `conflicts` are the ids that ask the same and answer differently, a tuple for each text.
    """

    rows: Mapping[str, RawProblem]
    excluded: Mapping[str, int]
    conflicts: Sequence[tuple[str, ...]]


def clean_problems(rows: Iterable[RawProblem]) -> _CleanedProblems:
    """Clean rows: drop copies, other languages, unsound answers and repeated texts, in this order.

    Rows with the same text and different answers are all dropped: nothing says which answer is
    right. Their order does not matter. DamagedRawRowError if two different rows have one id.
    """
    rows = list(rows)
    distinct = _without_copies(rows)
    english = [row for row in distinct if _is_english(row.text)]
    integers = [row for row in english if _INTEGER.fullmatch(row.answer.strip())]
    sound = [row for row in integers if abs(int(row.answer)) <= LARGEST]
    groups = _by_text(sound)
    conflicts = {text: g for text, g in groups.items() if len({row.answer for row in g}) > 1}
    kept = {text: group[0] for text, group in groups.items() if text not in conflicts}
    in_conflict = sum(map(len, conflicts.values()))
    return _CleanedProblems(
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
            raise DamagedRawRowError(
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
        groups[normalize_for_duplicates(row.text)].append(RawProblem(row.id, row.text, answer))
    return {text: sorted(groups[text], key=lambda row: row.id) for text in sorted(groups)}


def _is_english(text: str) -> bool:
    """Whether a DAPO problem's text holds no letter of a script that English does not use.

    One Chinese character is enough to fail: problems that are all formula but for one connective
    have no more, so a filter by their share misses them. A filter by ASCII would lose problems
    for a curly quote. All languages in Latin script count as English.

    Example:
        >>> _is_english("\u8bbe $f(x) = x$, find $f(1)$.")
        False
        >>> _is_english("Find Ana\u2019s \ufb01rst sum\uff0c $x$.")
        True
    """
    return _FOREIGN.search(text) is None
