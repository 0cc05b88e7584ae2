"""The runs of a study's sweep over rates and steps, with gains and drift, as paths need them."""

import pandas as pd

from geosd.reporting.method_style import ordered, short_rate
from geosd.reporting.run_accuracies import SweepPoints, drift_of_runs, sweep_gains
from geosd.scores.movement_paths import RATE, Paths


def runs_of_sweep(
    scores: pd.DataFrame, drift: pd.DataFrame, model: str, points: SweepPoints
) -> pd.DataFrame:
    """A row for each run of a model: variant, rate, steps, seed, draw, gains, and drift if known.

    Gains are over pi_0 of the same seed, in points; drift is in radians. Where a run has no drift
    in the table, as in studies shipped with scores alone, there is no column of it. Methods are in
    the paper's order.
    """
    gains = sweep_gains(scores, model, points[model])
    moved = drift_of_runs(drift, model, gains["run"])
    if {*moved["run"]} == {*gains["run"]}:
        gains = gains.merge(moved, on=["run", "seed"])
    order = ordered(gains["variant"])
    place = gains["variant"].map(order.index)
    return gains.loc[place.sort_values(kind="stable").index].reset_index(drop=True)


def path_words(paths: Paths) -> str:
    """What the paths of a kind lead over, in words."""
    if paths.along == RATE:
        return f"learning rates, after {paths.at:.0f} steps"
    if paths.at is None:
        return "steps, each method at its rate"
    return f"steps at the rate {short_rate(paths.at)}"
