"""Main effects and interactions of a factorial, within a draw, and their means over draws.

Runs are a table with a row for each run: a column for each factor, `draw`, and values, which may be
missing. An effect is first taken within each draw, over the runs that have a value on all of its
sides, so what a draw does to all runs cancels.

Source: docs/factorial.md, "Endpoints", written before the runs.
"""

from collections.abc import Sequence
from typing import NamedTuple

import pandas as pd

from geosd.scores.statistics import ContrastStatistics, GroupStatistics, contrast_test

DRAW = "draw"
CURVATURE = {"hellinger": 1 / 8, "jsd": 1 / 8, "fwdkl": 1 / 2, "revkl": 1 / 2}
"""Each divergence near agreement, over Q = sum_i (dp_i)^2 / p_i; d_FR^2 is Q. JSD's beta is 1/2."""


def factorial_curvature_ratio(divergence: str, drift_penalty: float) -> float:
    """How many times the curvature of a divergence lambda d_FR^2 has, near agreement.

    Example:
        >>> factorial_curvature_ratio("hellinger", 1.0), factorial_curvature_ratio("fwdkl", 4.0)
        (8.0, 8.0)
    """
    return drift_penalty / CURVATURE[divergence]


class FactorialChange(NamedTuple):
    """One setting of a factor minus another."""

    factor: str
    to: object
    of: object


def main_effect(
    runs: pd.DataFrame, factors: Sequence[str], change: FactorialChange, value: str
) -> pd.Series:
    """A value at one setting of a factor minus that at another, in each draw: indexed by draw.

    It is the mean over the settings of the other factors at which both runs have a value; a draw
    without any is left out.
    """
    others = [name for name in factors if name != change.factor]
    wide = runs.pivot(index=[DRAW, *others], columns=change.factor, values=value)
    return _mean_by_draw(wide[change.to] - wide[change.of])


def interaction(
    runs: pd.DataFrame,
    factors: Sequence[str],
    first: FactorialChange,
    second: FactorialChange,
    value: str,
) -> pd.Series:
    """What the second change does to the effect of the first, in each draw: indexed by draw.

    It is the difference of two differences, in the mean over the settings of the other factors at
    which all four runs have a value; a draw without any is left out.
    """
    changed = [first.factor, second.factor]
    others = [name for name in factors if name not in changed]
    wide = runs.pivot(index=[DRAW, *others], columns=changed, values=value)
    after = wide[first.to, second.to] - wide[first.of, second.to]
    before = wide[first.to, second.of] - wide[first.of, second.of]
    return _mean_by_draw(after - before)


def _mean_by_draw(differences: pd.Series) -> pd.Series:
    return differences.dropna().groupby(DRAW).mean()


def effect_over_draws(by_draw: pd.Series) -> tuple[ContrastStatistics, float] | None:
    """The mean of an effect over draws with Student's 95 % interval, and its two-sided p.

    None where no draw has the effect; interval and p are NaN of a single draw.
    """
    if by_draw.empty:
        return None
    test = contrast_test([GroupStatistics.of(by_draw)])
    return test, 2 * min(test.p, 1 - test.p)
