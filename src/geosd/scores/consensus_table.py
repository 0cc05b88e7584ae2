"""The consensus table: what the OOD samples of every run agree on (paper, Figure consensus)."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import astuple
from itertools import chain

import pandas as pd

from geosd.evaluation.accuracy import count_correct, pass_at_k
from geosd.evaluation.consensus import THRESHOLD, consensus, false_consensus_rate
from geosd.problems.records import Sample, is_out_of_distribution
from geosd.scores.score_table import Run, group_by_benchmark
from geosd.scores.tidy import COLUMNS

Row = tuple[str, float, int, float]


def collect_consensus(tables: Mapping[Run, Sequence[Row]]) -> pd.DataFrame:
    """The consensus table of a study from the `consensus_rows` of each run, in the order given.

    A run without OOD problems, as in a selection of hyperparameters, has no row.
    """
    rows = [(*astuple(run), *row) for run, rows in tables.items() for row in rows]
    return pd.DataFrame(rows, columns=list(COLUMNS["consensus"]))


def consensus_rows(samples: Sequence[Sample], first: int) -> list[Row]:
    """A run's rows of the consensus table: quantity, x, problems and value.

    The `first` m samples of a problem are compared for agreement.
    """
    ood = [sample for sample in samples if is_out_of_distribution(sample.benchmark)]
    if not ood:
        return []
    benchmarks = group_by_benchmark(ood).values()
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
    false = _mean([false_consensus_rate(members) for members in consensuses])
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
    return math.fsum(values) / len(values)


def _mean_pass_at_k(counts: Counter[tuple[int, int]], k: int) -> float:
    """pass@k over problems, each distinct (n, c) computed once."""
    total = math.fsum(m * pass_at_k(n, c, k) for (n, c), m in counts.items())
    return total / counts.total()
