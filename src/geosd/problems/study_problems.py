"""A study's problems: those of its data source, and of fresh benchmarks."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from geosd.problems.dapo.raw_files import RawFiles, read_raw_files
from geosd.problems.dapo.splits import clean_and_split
from geosd.problems.fresh_benchmarks import (
    BY_FILE,
    FRESH,
    FreshBenchmark,
    fresh_benchmarks,
    is_fresh,
)
from geosd.problems.fresh_files import fresh_hashes, read_fresh, unread_files
from geosd.problems.problem_splits import ProblemSplits
from geosd.problems.records import ID, Problem
from geosd.problems.sources import get_data_source


def prepare(settings: Mapping[str, Any]) -> ProblemSplits:
    """The splits of a study's problems, with its fresh benchmarks under their names.

    Near duplicates of a fresh benchmark leave the training problems, as those of any other do. Of
    `dapo-math` a fresh benchmark is a file that nothing else reads; of another source it is one of
    the source's own benchmarks, by its name.

    Raises:
        FileNotFoundError: Files are missing.
        ValueError: Files are damaged or not the pinned ones, problems are too few, or a fresh
            benchmark is none of the source's.
    """
    fresh = fresh_benchmarks(settings.get("fresh", ()))
    if settings["source"] == BY_FILE and fresh:
        return _with_fresh_files(settings, fresh)
    return _renamed(get_data_source(settings["source"]).prepare(settings), fresh)


def _with_fresh_files(
    settings: Mapping[str, Any], fresh: Sequence[FreshBenchmark]
) -> ProblemSplits:
    folder = Path(settings["raw"])
    raw = read_raw_files(folder)
    with closing(get_data_source(BY_FILE).grader()) as grade:
        added = read_fresh(folder, fresh, BY_FILE, grade)
    benchmarks = {**raw.benchmarks, **added}
    hashes = {**raw.sha256, **fresh_hashes(folder, fresh)}
    return clean_and_split(RawFiles(raw.training, benchmarks, hashes), settings)


def _renamed(splits: ProblemSplits, fresh: Sequence[FreshBenchmark]) -> ProblemSplits:
    """The splits, with the fresh ones of a source's own benchmarks under their names."""
    own = [name for name in Counter(p.benchmark for p in splits.test) if name != ID]
    taken = [name for name in own if is_fresh(name)]
    if taken:
        raise ValueError(
            f"a benchmark is called {taken[0]}, as a fresh one is.\nHint: take {FRESH!r} from its"
            " name, and list the rest of it in data.fresh if it is a fresh one."
        )
    unknown = [one.name for one in fresh if one.name not in own]
    if unknown:
        raise ValueError(
            f"data.fresh lists {unknown[0]}, which is no benchmark of the study.\nHint: they are"
            f" {', '.join(own) or 'none'}."
        )
    if not fresh:
        return splits
    names = {one.name: one.benchmark for one in fresh}
    test = tuple(_called(problem, names) for problem in splits.test)
    return dataclasses.replace(splits, test=test)


def _called(problem: Problem, names: Mapping[str, str]) -> Problem:
    name = names.get(problem.benchmark, problem.benchmark)
    return dataclasses.replace(problem, benchmark=name)


def remarks(settings: Mapping[str, Any]) -> list[str]:
    """Notes on a study's files before a run: those of its source, and files that nobody reads."""
    found = get_data_source(settings["source"]).remarks(settings)
    if settings["source"] != BY_FILE:
        return found
    fresh = fresh_benchmarks(settings.get("fresh", ()))
    unread = unread_files(Path(settings["raw"] or ""), fresh)
    if unread:
        listed = ", ".join(str(path) for path in unread)
        found = [
            *found,
            f"not read: {listed}; a benchmark besides the paper's four is read where data.fresh"
            " lists its name (docs/problems.md, Fresh benchmarks)",
        ]
    return found
