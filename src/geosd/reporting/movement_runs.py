"""The runs of a study's sweep over rates and steps, with gains and drift, as paths need them."""

import pandas as pd

from geosd.reporting.method_style import method_style_rate, ordered_methods
from geosd.reporting.run_accuracies import SweepPoints, drift_of_runs, sweep_run_gains
from geosd.scores.movement_paths import RATE, MovementPaths


def movement_runs(
    scores: pd.DataFrame, drift: pd.DataFrame, model: str, points: SweepPoints
) -> pd.DataFrame:
    """A row for each run of a model: variant, rate, steps, seed, draw, gains, and drift if known.

    Gains are over pi_0 of the same seed, in points; drift is in radians. Where a run has no drift
    in the table, as in studies shipped with scores alone, there is no column of it. Methods are in
    the paper's order.
    """
    gains = sweep_run_gains(scores, model, points[model])
    moved = drift_of_runs(drift, model, gains["run"])
    if {*moved["run"]} == {*gains["run"]}:
        gains = gains.merge(moved, on=["run", "seed"])
    order = ordered_methods(gains["variant"])
    place = gains["variant"].map(order.index)
    return gains.loc[place.sort_values(kind="stable").index].reset_index(drop=True)


def movement_path_words(paths: MovementPaths) -> str:
    """What the paths of a kind lead over, in words."""
    if paths.along == RATE:
        return f"learning rates, after {paths.at:.0f} steps"
    if paths.at is None:
        return "steps, each method at its rate"
    return f"steps at the rate {method_style_rate(paths.at)}"
