"""The plane of gains in and out of distribution: its quadrants, and paths that leave its frame."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from geosd.reporting.method_style import MethodStyle, method_style
from geosd.scores.score_table import ID, OOD_AVERAGE
from geosd.scores.statistics import FEWEST_FOR_INTERVAL, student_interval

FRAME = 15.0
"""Most points either way that a plane of paths shows; collapses lie far beyond."""
GAINS_SHADE = "#E6F2E6"


def draw_plane(axes: Axes, low: Sequence[float], high: Sequence[float]) -> None:
    """Prepare a plane between its corners: gains on both shaded, and the base model at 0."""
    axes.axhline(0, color="0.55", lw=0.6, zorder=0.5)
    axes.axvline(0, color="0.55", lw=0.6, zorder=0.5)
    axes.fill_between([0, high[0]], 0, high[1], color=GAINS_SHADE, lw=0, zorder=0)
    axes.plot(0, 0, color="black", marker=method_style("pi_0").marker, ms=5, ls="", mew=0, zorder=4)
    axes.set(xlim=(low[0], high[0]), ylim=(low[1], high[1]))


def plane_frame(
    gains: pd.DataFrame, most: float = FRAME
) -> tuple[Sequence[float], Sequence[float]]:
    """Lower and upper corner of the plane of the origin and all gains of at most `most` points."""
    both = gains[[ID, OOD_AVERAGE]]
    near = (both.abs() <= most).all(axis="columns")
    shown = both[near]
    low = shown.min().fillna(0).clip(upper=0)
    high = shown.max().fillna(0).clip(lower=0)
    extent = high - low
    margin = (0.08 * extent).where(high > low, 1.0)  # where all lie beyond, or none moved
    return tuple(low - margin), tuple(high + margin)


def plane_path(axes: Axes, gains: pd.DataFrame, **line: Any) -> None:
    """Draw a line from the base model through gains in their order, with an arrow out of the frame.

    The plane's limits must be set; `line` is of `Axes.plot`.
    """
    corners = np.vstack([(0, 0), gains[[ID, OOD_AVERAGE]]])
    (drawn,) = axes.plot(*corners.T, **line)
    (left, right), (bottom, top) = axes.get_xlim(), axes.get_ylim()
    for start, stop in pairwise(corners):
        nearest_inside = np.clip(stop, (left, bottom), (right, top))
        if (nearest_inside == stop).all():
            continue
        _arrow_out(axes, start, stop, nearest_inside, drawn.get_color())
        break  # what comes back is cut like the rest


def _arrow_out(
    axes: Axes, start: np.ndarray, stop: np.ndarray, nearest_inside: np.ndarray, colour: Any
) -> None:
    """Draw the head of an arrow where the line from `start` to `stop` leaves the frame."""
    way = stop - start
    moves = stop != start
    shares = np.divide(nearest_inside - start, way, out=np.ones(2), where=moves)
    share = shares.min()  # of the way, up to the first edge of the frame
    tail = start + 0.9 * share * way
    tip = start + share * way
    arrow = {
        "arrowstyle": "-|>",
        "color": colour,
        "lw": 0,
        "mutation_scale": 7,
        "shrinkA": 0,
        "shrinkB": 0,
    }
    axes.annotate("", tip, tail, arrowprops=arrow, zorder=5)


def plane_mean_point(
    axes: Axes, x: pd.Series, y: pd.Series, look: MethodStyle, size: float = 5, **marker: Any
) -> None:
    """Draw the mean of independent values into a figure, with 95 % intervals both ways.

    Few values are points each. `marker` is of `Axes.plot`; its `color` replaces the method's.
    """
    usual = {
        "color": look.colour,
        "marker": look.marker,
        "mec": "white",
        "mew": 0.4,
        "zorder": 3,
    }
    marker = usual | marker
    zorder = marker["zorder"]
    mean_x, mean_y = x.mean(), y.mean()
    faint = {"color": marker["color"], "alpha": 0.7}
    if len(x) >= FEWEST_FOR_INTERVAL:
        bar = {"lw": 0.7, "zorder": zorder - 1}
        axes.plot(student_interval(x), (mean_y, mean_y), **faint, **bar)
        axes.plot((mean_x, mean_x), student_interval(y), **faint, **bar)
    elif len(x) > 1:
        axes.plot(x, y, ls="", marker="o", ms=1.8, mew=0, zorder=zorder, **faint)
    axes.plot(mean_x, mean_y, ls="", ms=size, **marker)
