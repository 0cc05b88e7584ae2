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

    Args:
        scores: Tidy scores.
        model: Name of the model.
        frontier: Runs of the frontier, the base model among them.
        stopped: Runs stopped early.

    Returns:
        For each seed the mean over its stopped runs of OOD average minus that of the frontier at
        the same ID accuracy, linearly between its points. A run outside the frontier's range of ID
        accuracy has nothing to be matched with; a seed of which all are is left out.

    Source: paper, Robustness to step size and early stopping ("at matched ID accuracy").
    """
    line, stops = (_id_and_ood(scores, model, runs) for runs in (frontier, stopped))
    gaps = {}
    for seed in sorted(set(line) & set(stops)):
        points = sorted(line[seed])
        x, y = [p[0] for p in points], [p[1] for p in points]
        inside = [(i, o) for i, o in stops[seed] if x[0] <= i <= x[-1]]
        if len(points) > 1 and inside:
            gaps[seed] = float(np.mean([ood - np.interp(at, x, y) for at, ood in inside]))
    return pd.Series(gaps, dtype=float)


def _id_and_ood(
    scores: pd.DataFrame, model: str, runs: Sequence[str]
) -> dict[int, list[tuple[float, float]]]:
    """Seed -> (ID, OOD) of each of some runs."""
    points: dict[int, list[tuple[float, float]]] = {}
    for run in runs:
        both = [scores_by_seed(scores, model, run, name) for name in (ID, OOD_AVERAGE)]
        for seed, (at, ood) in pd.concat(both, axis=1, join="inner").iterrows():
            points.setdefault(seed, []).append((at, ood))
    return points
