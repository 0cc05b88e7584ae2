"""Optimum of each loss in the wide search world, against a fixed teacher.

    python analysis/wide_optima.py

As `search_optima` reckons for the search world. A state is how many classes of each band have
failed, or, in a class that solves the first equation, how many of its values of each kind. What the
teacher leaves to other values than x, it leaves to them as pi_0 has them.

B = bands of x mod 16, K = kinds of x div 16, S = states, V = values.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import tyro
from search_optima import Loss, expected, minimiser, print_tables
from search_policies import mean
from wide_policies import (
    BANDS_B,
    KINDS_K,
    VALUES_BK,
    GroupedPolicy,
    counts,
    first_masses,
    ideal_policies,
    prior,
    reached,
)

from geosd.problems.search.corpora import WideCorpus
from geosd.problems.search.equations import WIDE, EquationBenchmark

SETTINGS = (0.0, 1.0)
"""Of `data.conflict`."""
TEACHER = WideCorpus()
TITLES = (
    "Gain of the optimum over pi_0 in points, ID and OOD",
    "The same for a student that keeps its checks",
    "Per cent of the optimum's first x that are usual, and rare, and whose class is below 6",
    "Norm of pi_0's expected gradient at the first choice of x, and at a check, over a repeat's",
)


def optimum_of(
    loss: Loss, states: np.ndarray, number_G: np.ndarray, chance_G: np.ndarray, start_G: np.ndarray
) -> np.ndarray:
    """The best p of each value at each state [S, G].

    Args:
        states: How many values of each group are out of question [S, G].
        number_G: Values of each group; `chance_G`, of each to be x; `start_G`, pi_0's of each.
    """
    group_V = np.repeat(np.arange(len(number_G)), number_G)
    place_V = np.concatenate([np.arange(number) for number in number_G])
    open_SV = place_V >= states[:, group_V]
    chances = chance_G[group_V] * open_SV
    chances /= chances.sum(-1, keepdims=True)
    stray = TEACHER.stray * start_G[group_V] * open_SV
    whole = 1 - TEACHER.stray + stray.sum(-1, keepdims=True)
    hit = (1 - TEACHER.stray + stray) / whole
    # A value out of question has no mass in any distribution, and any positive one serves.
    miss = np.where(open_SV, stray, 1) / whole
    p_SV = minimiser(loss, chances, hit, miss)
    last_G = np.cumsum(number_G) - 1  # open as long as one of its group is
    return p_SV[:, last_G]


def optimum(
    loss: Loss, benchmark: EquationBenchmark, check: float = TEACHER.guided_check
) -> GroupedPolicy:
    """The student's policy at which the loss's expected gradient is 0 at every visited state."""
    start = first_masses(ideal_policies()["pi_0"])
    chance = prior(benchmark)
    first, within = counts(BANDS_B), counts(KINDS_K)[:-1]
    failed = np.array([np.outer(state, KINDS_K).ravel() for state in first[:-1]])
    groups = VALUES_BK.ravel()
    p_SG = optimum_of(
        loss, failed, groups, chance.ravel() / groups, start.ravel() / groups
    ).reshape(-1, 3, 3)
    p_SK = optimum_of(
        loss, np.array(within), KINDS_K, chance.sum(0) / KINDS_K, start.sum(0) / KINDS_K
    )
    return GroupedPolicy(
        dict(zip(first, [*p_SG, np.zeros((3, 3))], strict=True)),
        dict(zip([*within, tuple(KINDS_K)], [*p_SK, np.zeros(3)], strict=True)),
        check,
        TEACHER.guided_repeat,
    )


def accuracies(policy: GroupedPolicy, setting: float) -> np.ndarray:
    """ID accuracy at a setting of the dial and mean OOD accuracy, in per cent."""
    inside, *outside = reached(policy.sampled(), [WIDE.in_distribution(setting), *WIDE.outside])
    return 100 * np.array([inside.accuracy, mean(outside)])


def gradient_ratios(loss: Loss, benchmark: EquationBenchmark) -> tuple[float, float]:
    """Norms of pi_0's expected gradient of the logits, over that at a choice to repeat.

    Of the first choice of x, and of a choice to check, each p (slope - sum p slope).
    """
    chances = of_each_value(prior(benchmark))
    p = of_each_value(first_masses(ideal_policies()["pi_0"]))
    miss = TEACHER.stray * p
    slopes = [(p, expected(loss.slope, p, chances, miss + 1 - TEACHER.stray, miss))]
    for student, teacher in (
        (TEACHER.blind.check, TEACHER.guided_check),
        (TEACHER.blind.repeat, TEACHER.guided_repeat),
    ):
        pair = np.array([student, 1 - student])
        slopes.append((pair, loss.slope(pair, np.array([teacher, 1 - teacher]))))
    first, check, repeat = (np.linalg.norm(at * (of - at @ of)) for at, of in slopes)
    return float(first / repeat), float(check / repeat)


def of_each_value(mass_BK: np.ndarray) -> np.ndarray:
    """Mass of each value [V], from that of each group."""
    values = VALUES_BK.ravel()
    return np.repeat(mass_BK.ravel() / values, values)


def cells(loss: Loss, setting: float) -> tuple[str, ...]:
    """An optimum's gains, without and with checks, first choices and gradients, at a setting."""
    kind = WIDE.in_distribution(setting)
    start = accuracies(ideal_policies()["pi_0"], setting)
    free = optimum(loss, kind, TEACHER.guided_check)
    keeping = optimum(loss, kind, TEACHER.blind.check)
    masses = 100 * first_masses(keeping)
    shares = (masses[:, 0].sum(), masses[:, 2].sum(), masses[0].sum())
    return (
        _joined(accuracies(free, setting) - start, "+.1f"),
        _joined(accuracies(keeping, setting) - start, "+.1f"),
        _joined(shares, ".1f"),
        _joined(gradient_ratios(loss, kind), ".2f"),
    )


def _joined(numbers: Iterable[float], form: str) -> str:
    return ", ".join(format(number, form) for number in numbers)


def main() -> None:
    """Print the optima's gains, then first choices and gradients, by setting of the dial."""
    print_tables(TITLES, SETTINGS, cells)


if __name__ == "__main__":
    tyro.cli(main)
