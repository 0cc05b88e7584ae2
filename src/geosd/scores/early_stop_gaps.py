"""Early stopping against the frontier that a sweep of the learning rate traces.

Both are of one seed: on the ID-OOD plane a seed's frontier is the line through its base model and
its full runs, in the order of their ID accuracy.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from geosd.scores.score_table import ID, OOD_AVERAGE, scores_by_seed


def early_stop_gaps(
    scores: pd.DataFrame, model: str, frontier: Sequence[str], stopped: Sequence[str]
) -> pd.Series:
    """OOD accuracy of early stops minus that of the learning-rate frontier at equal ID accuracy.

    `frontier` are runs of full length, the base model among them. The gap of a seed is the mean
    over its stopped runs of OOD average minus that of the frontier at the same ID accuracy,
    linearly between its points. A run outside the frontier's range of ID accuracy has nothing to
    be matched with; a seed of which all are is left out.

    Source: paper, Robustness to step size and early stopping ("at matched ID accuracy").
    """
    line, stops = (_id_and_ood(scores, model, runs) for runs in (frontier, stopped))
    gaps = {}
    for seed, points in line.sort_values([ID, OOD_AVERAGE]).groupby(level=0):
        inside = stops[(stops.index == seed) & stops[ID].between(*points[ID].agg(["min", "max"]))]
        if len(points) > 1 and len(inside):
            matched = np.interp(inside[ID], points[ID], points[OOD_AVERAGE])
            gaps[seed] = float((inside[OOD_AVERAGE].to_numpy() - matched).mean())
    return pd.Series(gaps, dtype=float)


def _id_and_ood(scores: pd.DataFrame, model: str, runs: Sequence[str]) -> pd.DataFrame:
    """ID and OOD accuracy of each of some runs, indexed by seed."""
    parts = [
        pd.concat(
            {b: scores_by_seed(scores, model, run, b) for b in (ID, OOD_AVERAGE)},
            axis=1,
            join="inner",
        )
        for run in runs
    ]
    return pd.concat(parts)
