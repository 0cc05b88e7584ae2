"""How far a long training has moved, and when it fell: endpoints of its path.

A path has a row for each step at which a run was judged, ascending: `steps`, the gains `id` and
`ood_avg` over pi_0 of the same seed in points, and `drift`, the mean Fisher-Rao distance from pi_0
in radians. At step 0 all are 0.  Read by table_long_training.

Source: docs/long_training.md, "Endpoints", written before the runs.
"""

import math
from collections.abc import Sequence

from geosd.scores.equal_movement import value_where_reached


def long_training_fall(steps: Sequence[int], gains: Sequence[float], fall: float) -> float:
    """The step at which a path first reaches a loss of `fall` points; NaN if it never does.

    As `value_where_reached`, over the loss: linear between neighbours, from no loss at step 0.

    Raises:
        ValueError: `fall` is not above 0, so that every path would begin fallen.

    Example:
        >>> long_training_fall([100, 200], [-4.0, -16.0], 10.0)
        150.0
    """
    return value_where_reached([-gain for gain in gains], list(map(float, steps)), fall)


def long_training_growth(drift: tuple[float, float], steps: tuple[int, int], window: int) -> float:
    """The growth of drift between two steps for each window between two refreshes, in radians.

    Example:
        >>> long_training_growth((0.1, 0.3), (200, 1000), 100)
        0.025
    """
    first, last = steps
    return (drift[1] - drift[0]) * window / (last - first)


def late_growth(half: float, end: float) -> float:
    """The share of a drift that was gained in the second half of a training; NaN for no drift.

    Example:
        >>> late_growth(0.25, 0.5)
        0.5
    """
    return (end - half) / end if end else math.nan
