"""What samples say of every run, as tidy tables: consensus of the OOD ones, and habits."""

import math
from collections import Counter
from collections.abc import Sequence
from itertools import chain
from statistics import fmean

from geosd.problems.records import Sample, is_out_of_distribution
from geosd.problems.search.habits import HABITS, habit_shares
from geosd.scores.avg_and_pass_at_k import count_correct, group_by_benchmark, pass_at_k
from geosd.scores.consensus import THRESHOLD, consensus, false_consensus_rate
from geosd.scores.score_table import OOD_AVERAGE


def consensus_rows(samples: Sequence[Sample], first: int) -> list[tuple[str, float, int, float]]:
    """A run's rows of the consensus table: quantity, x, problems and value.

    The `first` m samples of a problem are compared for agreement. A run without OOD problems, as in
    a selection of hyperparameters, has no row.
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
    rows = [
        ("pass@k", float(k), problems, 100 * fmean([_mean_pass_at_k(c, k) for c in distinct]))
        for k in range(1, largest + 1)
    ]
    false = fmean([false_consensus_rate(members) for members in consensuses])
    rows.append(("false_consensus", THRESHOLD, problems, 100 * false))
    strengths: dict[float, list[bool]] = {}
    for agreement in chain.from_iterable(consensuses):
        strengths.setdefault(agreement.strength, []).append(agreement.correct)
    rows += [
        ("majority_accuracy", strength, len(right), 100 * sum(right) / len(right))
        for strength, right in sorted(strengths.items())
    ]
    return rows


def _mean_pass_at_k(counts: Counter[tuple[int, int]], k: int) -> float:
    """pass@k over problems, each distinct (n, c) computed once."""
    total = math.fsum(m * pass_at_k(n, c, k) for (n, c), m in counts.items())
    return total / counts.total()


def habit_rows(samples: Sequence[Sample]) -> list[tuple[str, str, float]]:
    """A run's rows of the table of habits: benchmark, habit, value; then the OOD benchmarks' means.

    A habit without occasion has no row, nor a mean where a benchmark lacks its row.
    """
    shares = {name: habit_shares(of) for name, of in group_by_benchmark(samples).items()}
    if outside := [shares[name] for name in shares if is_out_of_distribution(name)]:
        everywhere = [habit for habit in HABITS if all(habit in of for of in outside)]
        shares[OOD_AVERAGE] = {h: fmean(of[h] for of in outside) for h in everywhere}
    return [(name, habit, value) for name in shares for habit, value in shares[name].items()]
