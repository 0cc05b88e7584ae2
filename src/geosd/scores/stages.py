"""Group-sequential tests: seeds in stages, with bounds that are fixed before the first run.

At each stage a share of the whole level is spent (Lan and DeMets 1983), so that a true null
hypothesis is rejected at any stage with at most the whole level. The bounds are those of a normal
score with independent increments; a Student test is held to them by its significance level
(Jennison and Turnbull 2000, section 3.8), whose error with few runs `analysis/lean_design.py`
simulates.

k = stages, n_k = runs after stage k, t_k = n_k / n_K.
"""

import math
from collections.abc import Callable, Sequence
from functools import lru_cache, partial

import numpy as np
from scipy.optimize import brentq
from scipy.stats import norm, t

from geosd.scores.statistics import GroupStatistics

Spending = Callable[[float, float], float]
"""The level that is spent at a share of the runs, of a whole level."""
NODES = 401
"""Points of the normal density of a score in each stage; odd, for Simpson's rule."""
STUDENT = 0.85
"""Share of the whole level that is spent, because bounds of a normal score let a Student test err
1.10 times as often with 3, 6 and 10 runs, whatever the level (`analysis/lean_design.py`); with
room for other stages."""
UNLIKELY = 0.1
"""Chance of a decision by the last stage below which a comparison is given up as futile."""


def pocock_like(share: float, alpha: float) -> float:
    """The level spent at a share of the runs: alpha ln(1 + (e - 1) t), much of it early.

    Source: Lan and DeMets 1983.
    """
    return alpha * math.log(1 + (math.e - 1) * share)


def obrien_fleming_like(share: float, alpha: float) -> float:
    """The level spent at a share of the runs: 4 - 4 Phi(z_{alpha/4} / sqrt(t)), little of it early.

    Source: Lan and DeMets 1983, their alpha_1 for half of the level on each side.
    """
    return float(4 * norm.sf(norm.isf(alpha / 4) / math.sqrt(share)))


def stage_bounds(shares: Sequence[float], alpha: float, spending: Spending) -> list[float]:
    """The bounds |Z_k| of a two-sided test of level alpha, for ascending shares t_k of the runs.

    The density of the score S_k = Z_k sqrt(t_k) of tests that have gone on is carried from stage to
    stage on a grid (Armitage, McPherson and Rowe 1969), and the bound is where the rest of the
    stage's level lies outside.

    Raises:
        ValueError: The shares do not ascend from above 0 to 1.
    """
    if not all(a < b for a, b in zip([0.0, *shares], shares, strict=False)) or shares[-1] != 1:
        raise ValueError(
            f"stages at {', '.join(f'{share:g}' for share in shares)} of the runs; they ascend from"
            " above 0 to 1.\nHint: `stages` of the study, as [3, 6, 10]."
        )
    found: list[float] = []
    scores, masses, last, spent = np.zeros(1), np.ones(1), 0.0, 0.0
    for share in shares:
        step = math.sqrt(share - last)
        due = spending(share, alpha) - spent

        missing = partial(_missing, scores=scores, masses=masses, share=share, step=step, due=due)
        bound = brentq(missing, 0.01, 15.0, xtol=1e-10)
        found.append(bound)
        limit = bound * math.sqrt(share)
        grid = np.linspace(-limit, limit, NODES)
        density = norm.pdf((grid[:, None] - scores[None, :]) / step) / step @ masses
        scores, masses = grid, density * _simpson(grid)
        last, spent = share, spent + due
    return found


def _missing(
    z: float, scores: np.ndarray, masses: np.ndarray, share: float, step: float, due: float
) -> float:
    """How much more than `due` lies outside the bound z of a stage."""
    limit = z * math.sqrt(share)
    beyond = norm.sf((limit - scores) / step) + norm.cdf((-limit - scores) / step)
    return float(masses @ beyond) - due


def _simpson(grid: np.ndarray) -> np.ndarray:
    """Weights of Simpson's rule on an even grid of an odd number of points."""
    weights = np.ones(len(grid))
    weights[1:-1:2], weights[2:-1:2] = 4, 2
    return weights * (grid[1] - grid[0]) / 3


@lru_cache(maxsize=4096)
def nominal_stage_levels(
    stages: tuple[int, ...], alpha: float, spending: Spending = pocock_like
) -> tuple[float, ...]:
    """The two-sided level of the test at each stage, of stages after so many runs.

    Example:
        >>> [round(level, 4) for level in nominal_stage_levels((3, 6, 10), 0.05)]
        [0.0177, 0.017, 0.0194]
    """
    shares = [runs / stages[-1] for runs in stages]
    return tuple(
        float(2 * norm.sf(bound)) for bound in stage_bounds(shares, STUDENT * alpha, spending)
    )


def stage_level_at(stages: Sequence[int], stage: int, spending: Spending = pocock_like) -> Callable:
    """The level of one stage's test, as a function of the whole level."""
    return lambda alpha: nominal_stage_levels(tuple(stages), alpha, spending)[stage]


def stage_decision_chance(
    group: GroupStatistics, planned: int, level: float, ends: tuple[float, float]
) -> float:
    """The chance that a Student interval over all `planned` runs holds neither finite end.

    Runs are normal; the mean of those to come is predicted from those seen, sd is taken to stay.
    For one group: the final mean is the mean seen plus sd sqrt(1/n - 1/N) times a t of n - 1
    degrees of freedom. NaN where there is one run or no spread.
    """
    if group.n < 2 or not group.sd > 0:
        return math.nan
    if group.n >= planned:
        return math.nan
    scale = group.sd * math.sqrt(1 / group.n - 1 / planned)
    half = float(t.isf(level / 2, planned - 1)) * group.sd / math.sqrt(planned)
    law = t(df=group.n - 1, loc=group.mean, scale=scale)
    undecided = [law.cdf(end + half) - law.cdf(end - half) for end in ends if math.isfinite(end)]
    return float(max(0.0, 1 - sum(undecided)))
