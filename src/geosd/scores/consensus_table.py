"""What the OOD samples of every run agree on, as one tidy table (the paper's Figure consensus).

A row is one point of one run: model, variant, seed, quantity, x, problems, value. With n samples of
a problem, the first m of which (16 in the paper) are asked for their agreement, the quantities are

pass@k             x = k for k = 1..n; value: percent, the run's mean over its OOD benchmarks
false_consensus    x = tau; value: percent of problems with C(x) >= tau and a wrong majority answer,
                   the run's mean over its OOD benchmarks
majority_accuracy  x = C, one row for each strength that occurs (a multiple of 1/m); value: percent
                   of the OOD problems of this strength, of all benchmarks together, whose majority
                   answer is right

problems is how many problems the value is over. Benchmarks weigh equally in the first two, as in
every OOD average of the paper; the third is conditioned on C, so each problem counts once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import astuple
from itertools import chain
from pathlib import Path

import pandas as pd

from geosd.evaluation.accuracy import count_correct, pass_at_k
from geosd.evaluation.consensus import consensus, false_consensus_rate
from geosd.problems.records import Sample, is_out_of_distribution
from geosd.scores.score_table import Run, by_benchmark
from geosd.scores.tidy import RUN_COLUMNS, read_tidy

COLUMNS = RUN_COLUMNS | {"quantity": str, "x": float, "problems": int, "value": float}
THRESHOLD = 0.75
"""The paper's tau."""

Row = tuple[str, float, int, float]


def collect(tables: Mapping[Run, Sequence[Row]]) -> pd.DataFrame:
    """The tidy table of a study from the `consensus_rows` of each run, in the order given.

    A run without OOD problems, as in a selection of hyperparameters, has no row.
    """
    rows = [(*astuple(run), *row) for run, rows in tables.items() for row in rows]
    return pd.DataFrame(rows, columns=list(COLUMNS))


def consensus_rows(samples: Sequence[Sample], first: int) -> list[Row]:
    """The rows (quantity, x, problems, value) of one run, m = `first`."""
    benchmarks = by_benchmark(s for s in samples if is_out_of_distribution(s.benchmark)).values()
    if not benchmarks:
        return []
    counts = [count_correct(members) for members in benchmarks]
    consensuses = [consensus([s for s in members if s.sample < first]) for members in benchmarks]
    problems = sum(map(len, counts))
    # The shortest benchmark says how far k goes: a larger k has no average over benchmarks.
    largest = min(members[0].n for members in counts)
    distinct = [Counter((t.n, t.c) for t in members) for members in counts]
    rows: list[Row] = [
        ("pass@k", float(k), problems, 100 * _mean([_mean_pass_at_k(c, k) for c in distinct]))
        for k in range(1, largest + 1)
    ]
    false = _mean([false_consensus_rate(members, THRESHOLD) for members in consensuses])
    rows.append(("false_consensus", THRESHOLD, problems, 100 * false))
    strengths: dict[float, list[bool]] = {}
    for agreement in chain.from_iterable(consensuses):
        strengths.setdefault(agreement.strength, []).append(agreement.correct)
    rows += [
        ("majority_accuracy", strength, len(right), 100 * sum(right) / len(right))
        for strength, right in sorted(strengths.items())
    ]
    return rows


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def _mean_pass_at_k(counts: Counter[tuple[int, int]], k: int) -> float:
    """pass@k over problems, each distinct (n, c) computed once."""
    return sum(m * pass_at_k(n, c, k) for (n, c), m in counts.items()) / counts.total()


def read(files: Path | str | Sequence[Path]) -> pd.DataFrame:
    """Read a consensus table back; see `read_tidy`."""
    return read_tidy(files, COLUMNS, "a consensus table")
