"""Paths of methods over learning rates and over steps, compared where they have moved alike.

A path leads from pi_0, which has gained nothing and has not moved, in straight lines through points
of one draw. There are two kinds, because the way of a run decides what it has lost:

- over the learning rates: the runs of the full length, rates ascending;
- over the steps: one run, at the steps at which it was judged.

Values are read where a path first reaches a movement (`value_where_reached`), so a path that falls
back counts where it has been first, and one that never gets so far has no value.

Source: docs/equal_movement.md.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pandas as pd

from geosd.scores.equal_movement import DRIFT, value_where_reached
from geosd.scores.score_table import ID, OOD_AVERAGE
from geosd.scores.statistics import (
    ContrastStatistics,
    GroupStatistics,
    base_model_statistics,
    contrast_test,
    holm,
)

LEVELS = {ID: (3.0, 6.0, 9.0), DRIFT: (0.05, 0.075, 0.10)}
"""Movement -> where OOD gains are compared: points in distribution, radians from pi_0."""
REFERENCE = "geosd"
"""The method that others are compared with."""
LEVEL = 0.05
"""Of the corrected p from which on a difference is marked."""
RATE, STEPS = "learning_rate", "steps"


@dataclass(frozen=True)
class MovementPaths:
    """Paths of one kind: a row for each point, in the order of its path.

    Attributes:
        along: What the points differ in: `learning_rate` or `steps`.
        at: The number of steps of all points over rates; the rate of all paths over steps, or None
            where each method has a rate of its own.
        points: Columns `variant`, `learning_rate`, `steps`, `seed`, `draw`, the gains `id` and
            `ood_avg`, and `drift` where it was measured.
    """

    along: str
    at: float | None
    points: pd.DataFrame


def paths_of_runs(runs: pd.DataFrame) -> list[MovementPaths]:
    """The paths that runs make: first over the rates, then over the steps, rates ascending.

    `runs` has a row for each run, with the columns of `MovementPaths.points`. A method is on a path
    over the rates if it has two or more at the full length, and over the steps of a rate if it has
    two or more stops there. Where all methods have one such rate, these are paths of one kind; else
    a rate has paths where two methods or more have stops.
    """
    full = runs[runs[STEPS] == runs[STEPS].max()]
    over_rates = _with_two(full, ["variant"], RATE)
    found = []
    if not over_rates.empty:
        found.append(_ordered(over_rates, RATE, float(full[STEPS].max())))
    stopped = _with_two(runs, ["variant", RATE], STEPS)
    if stopped.empty:
        return found
    if (stopped.groupby("variant")[RATE].nunique() == 1).all():
        rates = stopped[RATE].unique()
        return [*found, _ordered(stopped, STEPS, rates[0] if len(rates) == 1 else None)]
    for rate, of_rate in stopped.groupby(RATE):
        if of_rate["variant"].nunique() > 1:
            found.append(_ordered(of_rate, STEPS, rate))
    return found


def _with_two(runs: pd.DataFrame, keys: Sequence[str], along: str) -> pd.DataFrame:
    """The runs of groups that have two or more values of `along`."""
    return runs[runs.groupby([*keys])[along].transform("nunique") > 1]


def _ordered(points: pd.DataFrame, along: str, at: float | None) -> MovementPaths:
    return MovementPaths(along, at, points.sort_values(along, kind="stable", ignore_index=True))


def path_gains_where_reached(paths: MovementPaths, movement: str, at: float) -> pd.DataFrame:
    """The OOD gain of each path where it first reaches a movement: a row for each path.

    Columns are `variant`, `seed`, `draw` and `gain`, which is NaN of a path that never does.
    """
    rows = []
    for (variant, seed, draw), path in paths.points.groupby(["variant", "seed", "draw"]):
        gain = value_where_reached(path[movement], path[OOD_AVERAGE], at)
        rows.append({"variant": variant, "seed": seed, "draw": draw, "gain": gain})
    return pd.DataFrame(rows)


@dataclass(frozen=True)
class PathComparison:
    """A method at one level of movement, over the base models that its paths start from.

    Attributes:
        gain: Mean OOD gain with Student's 95 % interval; None where no path gets so far.
        reached: How many base models have a path that does.
        of: How many have a path.
        difference: Of `REFERENCE` minus the method, paired by seed; None without any pair.
        pairs: How many base models have a pair.
        p: Of the difference, two-sided, with Holm's correction over the methods.
    """

    gain: ContrastStatistics | None
    reached: int
    of: int
    difference: ContrastStatistics | None
    pairs: int
    p: float


def compare_paths(models: Mapping[str, pd.DataFrame]) -> dict[str, PathComparison]:
    """Compare methods at one level; of each model a table of `path_gains_where_reached`."""
    found = {}
    for variant in dict.fromkeys(name for gains in models.values() for name in gains["variant"]):
        of_models = [_values_and_leads(gains, variant) for gains in models.values()]
        values = [values for values, _ in of_models]
        reached = _interval([_known(of_model) for of_model in values])
        lead = None
        if variant != REFERENCE:
            lead = _interval([_known(leads) for _, leads in of_models])
        found[variant] = (reached, len(base_model_statistics(values)), lead)
    p_values = [
        2 * min(lead[0].p, 1 - lead[0].p) if lead else math.nan for *_, lead in found.values()
    ]
    return {
        variant: PathComparison(
            gain=reached[0] if reached else None,
            reached=reached[1] if reached else 0,
            of=of,
            difference=lead[0] if lead else None,
            pairs=lead[1] if lead else 0,
            p=p,
        )
        for (variant, (reached, of, lead)), p in zip(found.items(), holm(p_values), strict=True)
    }


BySeed = tuple[pd.Series, pd.Series]
"""A value of each path, and the draw that it starts from, both indexed by seed."""


def _values_and_leads(gains: pd.DataFrame, variant: str) -> tuple[BySeed, BySeed]:
    """The gains of a method's paths, and what `REFERENCE` has gained more, on one model."""
    by_seed = gains.set_index("seed")
    draws = gains.drop_duplicates("seed").set_index("seed")["draw"]
    values = by_seed.loc[by_seed["variant"] == variant, "gain"]
    leads = by_seed.loc[by_seed["variant"] == REFERENCE, "gain"] - values
    return (values, draws.reindex(values.index)), (leads, draws.reindex(leads.index))


def _known(of_model: BySeed) -> BySeed:
    """Only the paths that have a value."""
    values, draws = of_model
    known = values.notna()
    return values[known], draws[known]


def _interval(models: list[BySeed]) -> tuple[ContrastStatistics, int] | None:
    """The mean over base models with its interval, and their number; None of none."""
    some = [of_model for of_model in models if not of_model[0].empty]
    if not some:
        return None
    values = base_model_statistics(some)
    return contrast_test([GroupStatistics.of(values)]), len(values)
