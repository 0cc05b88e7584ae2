"""What a run has gained out of distribution where it has moved as far as others.

A run is a path: from pi_0, which has gained nothing and has not moved, through the steps at which
the run was judged, in straight lines. Gains are accuracies minus those of pi_0 of the same seed, in
points; drift is the mean Fisher-Rao distance from pi_0, in radians.

Source: docs/factorial.md, "Endpoints", written before the runs.
"""

import math
from collections.abc import Sequence

import numpy as np
import pandas as pd

from geosd.scores.collapse import collapses
from geosd.scores.score_table import ID, OOD_AVERAGE

DRIFT = "drift"
AT_ID_GAIN, AT_DRIFT = "at_id_gain", "at_drift"
"""Columns of `gains_at_equal_movement`: OOD gain at equal ID gain, and at equal drift."""
COLLAPSED = "collapsed"
EQUAL_ID_GAIN = 6.0
"""Points in distribution at which OOD gains are compared."""
EQUAL_DRIFT = 0.10
"""Radians from pi_0 at which OOD gains are compared."""


def value_where_reached(moved: Sequence[float], values: Sequence[float], at: float) -> float:
    """The value of a path where its movement first reaches `at`, linear between neighbours.

    The path begins where movement and value are 0; `moved` and `values` are those of its later
    points, in order. NaN where no point of it has moved so far: nothing is extrapolated.

    Raises:
        ValueError: `at` is not above 0, so the path would begin there.

    Example:
        >>> value_where_reached([4.0, 8.0], [-1.0, -3.0], 6.0)
        -2.0
    """
    if at <= 0:
        raise ValueError(f"a path is compared after its beginning, at more than 0; got {at}.")
    x, y = np.array([0.0, *moved]), np.array([0.0, *values])
    reached = np.flatnonzero(x >= at)
    if not len(reached):
        return math.nan
    end = reached[0]
    share = (at - x[end - 1]) / (x[end] - x[end - 1])
    return float(y[end - 1] + share * (y[end] - y[end - 1]))


def gains_at_equal_movement(stops: pd.DataFrame, run: Sequence[str]) -> pd.DataFrame:
    """A row for each run: its OOD gain at equal ID gain and at equal drift, and whether it falls.

    `stops` has a row for each step at which a run was judged: the columns `run`, which name it,
    `steps`, the gains `id` and `ood_avg`, and `drift`. The result has the columns `run`,
    `at_id_gain`, `at_drift`, and of the last step `id`, `ood_avg`, `drift` and `collapsed`, by the
    rule of `collapses` in and out of distribution.
    """
    rows = []
    for name, path in stops.sort_values("steps", kind="stable").groupby([*run], sort=False):
        last = path.iloc[-1]
        fallen = collapses(path[[ID, OOD_AVERAGE]].tail(1))
        rows.append(
            {
                **dict(zip(run, name, strict=True)),
                AT_ID_GAIN: value_where_reached(path[ID], path[OOD_AVERAGE], EQUAL_ID_GAIN),
                AT_DRIFT: value_where_reached(path[DRIFT], path[OOD_AVERAGE], EQUAL_DRIFT),
                **last[[ID, OOD_AVERAGE, DRIFT]],
                COLLAPSED: bool(fallen.item()),
            }
        )
    return pd.DataFrame(rows)
