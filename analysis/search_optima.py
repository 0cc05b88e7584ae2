"""Optimum of each loss in the search world, against a fixed teacher, without training.

    python analysis/search_optima.py

The student of this reckoning knows the values that it has tried and nothing else of the question:
its choice of x is free after each set of them. The teacher is fixed and knows x. Student, teacher
and ID problems are those of the world's definition, so no model is involved and nothing is drawn.
docs/search.md has the tables.

S = sets of tried values as bits of their index, X = values of x.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
import tyro
from search_policies import (
    SIZE_S,
    TRIED_SX,
    TabledPolicy,
    mean,
    normalised,
    patterns,
    reached,
    value_prior,
)

from geosd.problems.search.corpora import BLIND, SearchCorpus
from geosd.problems.search.equations import (
    MODULUS,
    SEARCH,
    EquationBenchmark,
)
from geosd.reporting.tables import markdown_table

SETTINGS = (0.0, 0.25, 0.5, 0.75, 1.0)
"""Of `data.conflict`."""
TEACHER = SearchCorpus()
Array = np.ndarray


TITLES = (
    "Gain of the optimum over pi_0 in points, ID and OOD",
    "Per cent of the optimum's first x below 6, and from 12, at temperature 1",
    "Norm of pi_0's expected gradient at the first choice of x over that at a choice to repeat",
)


@dataclass(frozen=True)
class Loss:
    """A divergence D(p, q) that is a sum over tokens, by the derivatives of its terms.

    Attributes:
        slope: d/dp of a token's term at (p, q).
        curvature: Its derivative.
    """

    slope: Callable[[Array, Array], Array]
    curvature: Callable[[Array, Array], Array]


ALPHA, BETA = 0.1, 0.5
LOSSES = {
    "FwdKL": Loss(lambda p, q: -q / p, lambda p, q: q / p**2),
    "RevKL": Loss(lambda p, q: np.log(p / q) + 1, lambda p, q: 1 / p),
    "JSD": Loss(
        lambda p, q: (1 - BETA) * np.log(p / (BETA * q + (1 - BETA) * p)),
        lambda p, q: (1 - BETA) * BETA * q / p / (BETA * q + (1 - BETA) * p),
    ),
    "SkewKL": Loss(
        lambda p, q: -(1 - ALPHA) * q / (ALPHA * q + (1 - ALPHA) * p),
        lambda p, q: (1 - ALPHA) ** 2 * q / (ALPHA * q + (1 - ALPHA) * p) ** 2,
    ),
    "GeoSD (Hellinger)": Loss(
        lambda p, q: -0.5 * np.sqrt(q / p), lambda p, q: 0.25 * np.sqrt(q / p) / p
    ),
}
"""The paper's hyperparameters. At a fixed point GeoSD's anchor is the student: no drift term."""


def teacher_masses() -> tuple[Array, Array]:
    """The teacher's mass on x, and on each other value that was not tried [S, 1]."""
    hit, miss = 1 - TEACHER.stray, TEACHER.stray / (MODULUS - 1)
    whole_S = hit + miss * (MODULUS - SIZE_S - 1)
    return hit / whole_S[:, None], miss / whole_S[:, None]


def expected(
    derivative: Callable[[Array, Array], Array], p: Array, chances: Array, hit: Array, miss: Array
) -> Array:
    """A derivative at each token, in the mean over the values that x may have.

    The teacher has `hit` on a token where it is x, else `miss`.
    """
    return chances * derivative(p, hit) + (1 - chances) * derivative(p, miss)


def minimiser(loss: Loss, chances: Array, hit: Array, miss: Array) -> Array:
    """The p of sum 1 that minimises the mean of D(p, q) over x ~ chances, on their support.

    Newton's method for a convex sum of terms of one token each, from the mean of q, which has `hit`
    on x and `miss` on each other value of the support.
    """
    open_ = chances > 0
    p = normalised(open_ * expected(lambda _, q: q, chances, chances, hit, miss))
    for _ in range(200):
        safe = np.where(open_, p, 1.0)
        slope = expected(loss.slope, safe, chances, hit, miss)
        gain = open_ / expected(loss.curvature, safe, chances, hit, miss)
        total = np.maximum(gain.sum(-1, keepdims=True), np.finfo(float).tiny)
        step = gain * ((gain * slope).sum(-1, keepdims=True) / total - slope) / safe
        p = normalised(p * np.exp(np.clip(step, -1, 1)))
        if np.abs(step).max() < 1e-6:  # the step before was about its root
            return p
    raise RuntimeError("Newton's method did not settle.\nHint: was a mass of the teacher 0?")


def posterior(benchmark: EquationBenchmark) -> Array:
    """Chance of each x at each state that the student visits while it trains on a benchmark [S, X].

    A tried value was not x. It rules out less of an ambiguous question, where values that pass the
    first equation end a response unless they are checked. The student's own choices on the way are
    as likely for every x, so the chance of x is the same whatever its policy.
    """
    weights_SX = np.zeros(TRIED_SX.shape)
    for share, steps in patterns(benchmark):
        checked_SX = np.zeros(TRIED_SX.shape)
        for step in steps:
            checked_SX += np.roll(TRIED_SX, -step, axis=1)
        weights_SX += share * TEACHER.guided_check**checked_SX
    return normalised(value_prior(benchmark) * weights_SX * ~TRIED_SX)


@cache
def start() -> TabledPolicy:
    """The blind student's policy, pi_0's."""
    return TabledPolicy.of(BLIND)


def optimum(loss: Loss, benchmark: EquationBenchmark) -> TabledPolicy:
    """The student's policy at which the loss's expected gradient is 0 at every visited state.

    The teacher checks and repeats with one probability, whatever the question, so the student does.
    """
    next_SX = minimiser(loss, posterior(benchmark), *teacher_masses())
    return TabledPolicy(next_SX, TEACHER.guided_check, TEACHER.guided_repeat)


@cache
def accuracies(setting: float, policy: TabledPolicy | None = None) -> tuple[float, float]:
    """ID accuracy at a setting of the dial, and mean OOD accuracy, of a policy or of pi_0's."""
    benchmarks = SEARCH.in_distribution(setting), *SEARCH.outside
    inside, *outside = reached((policy or start()).sampled(), benchmarks)
    return inside.accuracy, mean(outside)


def gains(policy: TabledPolicy, setting: float) -> str:
    """Points by which a policy's ID and OOD accuracies are above those of pi_0's policy."""
    pairs = zip(accuracies(setting, policy), accuracies(setting), strict=True)
    return ", ".join(f"{100 * (now - before):+.1f}" for now, before in pairs)


def first_choice(policy: TabledPolicy) -> str:
    """Per cent of the first values below 6, and from 12."""
    first_X = policy.next_SX[0]
    return f"{100 * first_X[:6].sum():.1f}, {100 * first_X[12:].sum():.1f}"


def gradient_ratio(loss: Loss, benchmark: EquationBenchmark) -> float:
    """Norm of pi_0's expected gradient at the first choice of x over that at a choice to repeat.

    Both are of the logits: p (slope - sum p slope), in the mean over the problems.
    """
    prior = value_prior(benchmark)
    p = start().next_SX[0]
    hit_S, miss_S = teacher_masses()
    slope = expected(loss.slope, p, prior, hit_S[0], miss_S[0])
    student, teacher = (np.array([r, 1 - r]) for r in (BLIND.repeat, TEACHER.guided_repeat))
    norms = []
    for at, of in ((p, slope), (student, loss.slope(student, teacher))):
        norms.append(np.linalg.norm(at * (of - at @ of)))
    return float(norms[0] / norms[1])


def print_tables(
    titles: Sequence[str],
    settings: Sequence[float],
    cells: Callable[[Loss, float], Sequence[str]],
) -> None:
    """Print a table for each title: a row for each loss, a column for each setting of the dial.

    `cells` of a loss and a setting has a cell for each title.
    """
    head = ["loss", *(f"{setting:g}" for setting in settings)]
    tables = [[head] for _ in titles]
    for name, loss in LOSSES.items():
        rows = zip(*(cells(loss, setting) for setting in settings), strict=True)
        for table, row in zip(tables, rows, strict=True):
            table.append([name, *row])
    for title, table in zip(titles, tables, strict=True):
        print(f"{title}:\n\n{markdown_table(table)}\n")


def cells(loss: Loss, setting: float) -> tuple[str, str, str]:
    """An optimum's gains, its first choices and pi_0's gradient, at a setting of the dial."""
    kind = SEARCH.in_distribution(setting)
    best = optimum(loss, kind)
    return gains(best, setting), first_choice(best), f"{gradient_ratio(loss, kind):.2f}"


def main() -> None:
    """Print the optima's gains, then first choices and gradients, by setting of the dial."""
    print_tables(TITLES, SETTINGS, cells)


if __name__ == "__main__":
    tyro.cli(main)
