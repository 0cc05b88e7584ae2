"""How many samples a benchmark needs: variance over cost (Neyman 1934)."""

import math
from collections.abc import Mapping
from typing import NamedTuple

FEWEST = 4
"""Samples of a problem below which no variance within problems could be told."""


class AllocatedBenchmark(NamedTuple):
    """A benchmark to be sampled: its problems, and the mean of p (1 - p) over them, in [0, 1]."""

    problems: int
    within: float


def variance_for_allocation(avg: float, pass_at_2: float) -> float:
    """The mean of p (1 - p) over problems, from avg@k and pass@2 of the same samples, in [0, 1].

    Both are unbiased: E[1 - (1 - p)^2] - E[p] = E[p (1 - p)].
    """
    return max(0.0, pass_at_2 - avg)


def sampling_variance(
    benchmarks: Mapping[str, AllocatedBenchmark], samples: Mapping[str, int]
) -> float:
    """The variance of a run's average over benchmarks that sampling adds, in points squared.

    Var = 100^2 / B^2 sum_b w_b / (P_b n_b), with B benchmarks of P_b problems and n_b samples each.
    """
    parts = [one.within / (one.problems * samples[name]) for name, one in benchmarks.items()]
    return 1e4 * math.fsum(parts) / len(benchmarks) ** 2


def neyman(benchmarks: Mapping[str, AllocatedBenchmark], responses: int) -> dict[str, int]:
    """Samples of each benchmark's problems that make `sampling_variance` least for its cost.

    The cost is responses; n_b is proportional to sqrt(w_b) / P_b, because a sample of each problem
    costs P_b and takes from a variance of w_b / P_b. Fractions are dropped, and none is below
    `FEWEST`.

    Raises:
        ValueError: The responses do not suffice for `FEWEST` samples of each problem.
    """
    if responses < FEWEST * sum(one.problems for one in benchmarks.values()):
        raise ValueError(
            f"{responses} responses are fewer than {FEWEST} for each problem.\n"
            "Hint: allow more, or leave out a benchmark."
        )
    held: set[str] = set()
    while True:
        left = responses - FEWEST * sum(benchmarks[name].problems for name in held)
        weights = {
            name: math.sqrt(one.within) / one.problems
            for name, one in benchmarks.items()
            if name not in held
        }
        total = math.fsum(weight * benchmarks[name].problems for name, weight in weights.items())
        shared = {name: int(left * weight / total) for name, weight in weights.items()}
        small = {name for name, number in shared.items() if number < FEWEST}
        if not small:
            return {name: shared.get(name, FEWEST) for name in benchmarks}
        held |= small
