"""The plane of gains in and out of distribution: its quadrants, and paths that leave its frame."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from geosd.reporting.method_style import Method, method
from geosd.scores.score_table import ID, OOD_AVERAGE
from geosd.scores.statistics import FEWEST_FOR_INTERVAL, student_interval

FRAME = 15.0
"""Most points either way that a plane of paths shows; collapses lie far beyond."""
GAINS_SHADE = "#E6F2E6"


def plane(axes: Axes, low: Sequence[float], high: Sequence[float]) -> None:
    """Prepare a plane between its corners: gains on both shaded, and the base model at 0."""
    axes.axhline(0, color="0.55", lw=0.6, zorder=0.5)
    axes.axvline(0, color="0.55", lw=0.6, zorder=0.5)
    axes.fill_between([0, high[0]], 0, high[1], color=GAINS_SHADE, lw=0, zorder=0)
    axes.plot(0, 0, color="black", marker=method("pi_0").marker, ms=5, ls="", mew=0, zorder=4)
    axes.set(xlim=(low[0], high[0]), ylim=(low[1], high[1]))


def frame_of(gains: pd.DataFrame, most: float = FRAME) -> tuple[Sequence[float], Sequence[float]]:
    """Lower and upper corner of the plane of the origin and all gains of at most `most` points."""
    both = gains[[ID, OOD_AVERAGE]]
    both = both[(both.abs() <= most).all(axis="columns")]
    low, high = both.min().fillna(0).clip(upper=0), both.max().fillna(0).clip(lower=0)
    room = (0.08 * (high - low)).where(high > low, 1.0)  # where all lie beyond, or none moved
    return tuple(low - room), tuple(high + room)


def path(axes: Axes, gains: pd.DataFrame, **line: Any) -> None:
    """Draw a line from the base model through gains in their order, with an arrow out of the frame.

    The plane's limits must be set; `line` is of `Axes.plot`.
    """
    corners = np.vstack([(0, 0), gains[[ID, OOD_AVERAGE]]])
    (drawn,) = axes.plot(*corners.T, **line)
    low, high = zip(axes.get_xlim(), axes.get_ylim(), strict=True)
    for start, stop in pairwise(corners):
        seen = np.clip(stop, low, high)
        if (seen == stop).all():
            continue
        way = np.divide(seen - start, stop - start, out=np.ones(2), where=stop != start)
        tail, tip = (start + share * way.min() * (stop - start) for share in (0.9, 1))
        arrow = {"arrowstyle": "-|>", "color": drawn.get_color(), "lw": 0, "mutation_scale": 7}
        axes.annotate("", tip, tail, arrowprops=arrow | {"shrinkA": 0, "shrinkB": 0}, zorder=5)
        break  # what comes back is cut like the rest


def mean_point(
    axes: Axes, x: pd.Series, y: pd.Series, look: Method, size: float = 5, **marker: Any
) -> None:
    """Draw the mean of independent values into a figure, with 95 % intervals both ways.

    Few values are points each. `marker` is of `Axes.plot`; its `color` replaces the method's.
    """
    marker = {"color": look.colour, "marker": look.marker, "mec": "white", "mew": 0.4} | marker
    colour, zorder = marker["color"], marker.setdefault("zorder", 3)
    if len(x) >= FEWEST_FOR_INTERVAL:
        for ends, across in ((student_interval(x), True), (student_interval(y), False)):
            bar = (ends, (y.mean(),) * 2) if across else ((x.mean(),) * 2, ends)
            axes.plot(*bar, color=colour, lw=0.7, alpha=0.7, zorder=zorder - 1)
    elif len(x) > 1:
        axes.plot(x, y, ls="", marker="o", ms=1.8, mew=0, color=colour, alpha=0.7, zorder=zorder)
    axes.plot(x.mean(), y.mean(), ls="", ms=size, **marker)
