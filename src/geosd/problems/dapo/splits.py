"""The paper's splits, and a card that says what became of every row."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from geosd.problems.dapo.cleaning import CleanedProblems, clean_problems
from geosd.problems.dapo.near_duplicates import NearDuplicateIndex, Overlap, find_overlaps
from geosd.problems.dapo.raw_files import RawFiles, RawProblem
from geosd.problems.dapo.text_normalization import normalize_text
from geosd.problems.problem_splits import ProblemSplits
from geosd.problems.records import Problem
from geosd.seeds import seed_of


def clean_and_split(
    raw: RawFiles,
    *,
    train: int,
    select_train: int,
    select_validation: int,
    test_id: int,
    test_per_benchmark: int | None,
    overlaps: Literal["exclude", "keep"],
    seed: int,
) -> ProblemSplits:
    """Draw the paper's splits of DAPO-Math: clean its rows, compare them with the benchmarks, draw.

    A row's place in the draw is a hash of its text and the seed: the order of the rows does not
    matter. Test problems are drawn first, so a larger training set never changes the test sets.

    Args:
        raw: Rows of DAPO-Math and of the benchmarks.
        train: Number of training problems.
        select_train: Number of problems that hyperparameter candidates are trained on.
        select_validation: Number of problems that choose among them.
        test_id: Number of held-out problems of the in-distribution test.
        test_per_benchmark: Number of problems of each benchmark; None takes all.
        overlaps: `exclude` draws no problem that is in a benchmark or nearly so, and no problem
            that is nearly one of another split; `keep` draws and only reports them.
        seed: Of the draw.

    Raises:
        ValueError: Too few problems are left for the splits, or a benchmark is too small.

    Source: The paper's appendix "Data and privileged context" and, for sizes, "Evaluation" and
    "Baselines".
    """
    cleaned = clean_problems(raw.training)
    overlapping = find_overlaps(cleaned.rows.values(), raw.benchmarks)
    ids = {pair.training_id for pair in overlapping}
    eligible = [row for row in cleaned.rows.values() if overlaps == "keep" or row.id not in ids]
    drawn = draw_splits(
        eligible,
        raw.benchmarks,
        train=train,
        select_train=select_train,
        select_validation=select_validation,
        test_id=test_id,
        test_per_benchmark=test_per_benchmark,
        seed=seed,
        skip_near=overlaps == "exclude",
    )
    card = {
        "files": dict(raw.sha256),
        "rows": len(raw.training),
        **_exclusions(cleaned, overlapping, len(eligible)),
        **drawn.card,
    }
    return dataclasses.replace(drawn, card=card)


def draw_splits(
    eligible: Sequence[RawProblem],
    benchmarks: Mapping[str, Sequence[RawProblem]],
    *,
    train: int,
    select_train: int,
    select_validation: int,
    test_id: int,
    test_per_benchmark: int | None,
    seed: int,
    skip_near: bool,
) -> ProblemSplits:
    """Draw the splits of problems that exist, and cut the benchmarks.

    Args:
        eligible: The problems that may be drawn, none of them twice.
        benchmarks: The problems of each out-of-distribution benchmark.
        train: As in `clean_and_split`, like all sizes.
        select_train: Size.
        select_validation: Size.
        test_id: Size.
        test_per_benchmark: Size; None takes all.
        seed: Of the draw.
        skip_near: Pass over a problem that is nearly one of an earlier split; otherwise the card
            only reports it.

    Raises:
        ValueError: Too few problems for the splits, or a benchmark is too small.
    """
    sizes = dict(
        id=test_id, select_train=select_train, select_validation=select_validation, train=train
    )
    splits, close = _draw(_ranked(eligible, seed), sizes, skip=skip_near)
    benchmarks = {
        name: _cut_benchmark(name, rows, test_per_benchmark, seed)
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
            "near another split": close,
            "kept": {name: len(rows) for name, rows in {**splits, **benchmarks}.items()},
        },
    )


def _exclusions(
    cleaned: CleanedProblems, overlapping: Sequence[Overlap], eligible: int
) -> dict[str, Any]:
    """The part of the card that accounts for every row that cannot be drawn."""
    pairs = {(pair.benchmark, pair.benchmark_id) for pair in overlapping}
    by_benchmark = Counter(benchmark for benchmark, _ in pairs)
    return {
        "excluded": {**cleaned.excluded, "in a benchmark": len(cleaned.rows) - eligible},
        "eligible": eligible,
        "same text, different answers": [list(group) for group in cleaned.conflicts],
        "benchmark problems in the training set": dict(sorted(by_benchmark.items())),
        "overlaps": [dataclasses.asdict(pair) for pair in overlapping],
    }


def _ranked(rows: Sequence[RawProblem], seed: int) -> list[RawProblem]:
    return sorted(rows, key=lambda row: seed_of(seed, "problems", normalize_text(row.text)))


def _draw(
    ranked: Sequence[RawProblem], sizes: Mapping[str, int], *, skip: bool
) -> tuple[dict[str, list[RawProblem]], list[dict[str, Any]]]:
    """Fill the splits one after another; and the problems near to one of an earlier split."""
    splits: dict[str, list[RawProblem]] = {name: [] for name in sizes}
    close: list[dict[str, Any]] = []
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
            if matches := drawn.find(row.text):
                name_drawn, ratio = matches[0]
                close.append(
                    {"problem": row.id, "drawn problem": name_drawn, "ratio": round(ratio, 4)}
                )
                if skip:
                    continue
            splits[name].append(row)
        for row in splits[name]:
            drawn.add(row.id, row.text)
    return splits, close


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
