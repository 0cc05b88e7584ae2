"""How many problems the benchmarks of a study have, known before any is drawn where it can be."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from geosd.problems.dataset_download import load_dataset_catalogue
from geosd.problems.fresh_benchmarks import BY_FILE, fresh_benchmarks
from geosd.problems.fresh_files import fresh_rows
from geosd.problems.records import ID
from geosd.problems.sources import get_data_source
from geosd.problems.sources.search import Search
from geosd.problems.sources.word_problems import OUT_OF_DISTRIBUTION, WordProblems


def benchmark_sizes(settings: Mapping[str, Any]) -> Mapping[str, int] | None:
    """Problems of each benchmark but ID that a study is judged on; None where files lack."""
    fresh = fresh_benchmarks(settings.get("fresh", ()))
    sizes = _sizes_of_source(settings)
    if sizes is None:
        return None
    if settings["source"] == BY_FILE:
        added = fresh_rows(Path(settings["raw"] or ""), fresh, BY_FILE)
        if added is None:
            return None
        sizes = {**sizes, **added}
    names = {one.name: one.benchmark for one in fresh}
    number = settings["test_per_benchmark"]
    return {names.get(name, name): number or size for name, size in sizes.items()}


def _sizes_of_source(settings: Mapping[str, Any]) -> Mapping[str, int] | None:
    """Problems of each benchmark of a source, those of published ones without any file."""
    source = get_data_source(settings["source"])
    number = settings["test_per_benchmark"]
    if isinstance(source, Search):
        return {benchmark.name: number for benchmark in source.world.outside}
    if isinstance(source, WordProblems):
        return {kind.name: number for kind in OUT_OF_DISTRIBUTION}
    published = load_dataset_catalogue(settings["source"])
    if published:
        return {Path(entry.name).stem: entry.rows for entry in published if entry.rows}
    if settings["source"] == "jsonl":
        return source.benchmark_sizes(settings["raw"])
    try:
        drawn = source.prepare(settings).test
    except (ValueError, OSError):
        return None
    counts = Counter(problem.benchmark for problem in drawn)
    return {name: counts[name] for name in counts if name != ID}
