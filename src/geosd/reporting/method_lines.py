"""Lines of methods: in colour with intervals, where there are many only those of a few methods."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from geosd.reporting.method_style import (
    BACKGROUND,
    DASHED,
    EMPHASIZED,
    method,
    style_by_method,
)
from geosd.scores.statistics import student_interval

DASHED_METHODS = ("pi_0",)
"""The base model is a reference and no method."""
WIDTH, MARKER, EDGE = 1.4, 3.6, 0.3
"""Of lines in colour, of their markers and of the markers' edges, in points."""
GREY_WIDTH = 0.8
Interval = Callable[[Iterable[float]], tuple[float, float]]


def interval_within(values: Iterable[float], low: float, high: float) -> tuple[float, float]:
    """95 % interval of a mean over runs in a figure: `student_interval` cut at a scale's ends."""
    lower, upper = student_interval(values)
    return max(lower, low), min(upper, high)


def coloured(variants: Sequence[str]) -> list[str]:
    """The methods of a figure that have a colour and an interval: five or fewer."""
    few = len(variants) <= len(EMPHASIZED)
    return [name for name in variants if few or name in EMPHASIZED]


def method_handles(variants: Sequence[str]) -> dict[str, Line2D]:
    """The lines of a figure's legend by their labels; all grey lines have one."""
    handles = {method(name).drawn: _handle(name) for name in coloured(variants)}
    if len(handles) < len(variants):
        handles["other methods"] = Line2D([], [], color=BACKGROUND, linewidth=GREY_WIDTH)
    return handles


def method_lines(
    axes: Axes,
    runs: pd.DataFrame,
    x: str,
    y: str,
    variants: Sequence[str],
    interval: Interval,
) -> None:
    """Draw the means over seeds of methods into a figure's panel.

    Methods in colour have intervals and markers; the others are thin grey lines.

    Args:
        axes: The panel.
        runs: A row for each run and point, with columns `variant`, x and y.
        x: The column along the panel.
        y: The column that is averaged over runs.
        variants: All methods of the figure, not only of the panel.
        interval: Both ends of the interval of a mean from the values of its runs.
    """
    strong = coloured(variants)
    grey = [name for name in variants if name not in strong]
    line = {"x": x, "y": y, "legend": False, "ax": axes}
    others = runs[runs["variant"].isin(grey)]
    if len(others):
        palette = dict.fromkeys(grey, BACKGROUND)
        sns.lineplot(
            others, hue="variant", palette=palette, errorbar=None, lw=GREY_WIDTH, zorder=2, **line
        )
    emphasized = runs[runs["variant"].isin(strong)]
    if len(emphasized):
        sns.lineplot(
            emphasized,
            errorbar=interval,
            err_kws={"alpha": 0.18, "lw": 0, "zorder": 1},
            linewidth=WIDTH,
            markersize=MARKER,
            markeredgewidth=EDGE,
            zorder=3,
            **line,
            **style_by_method(strong, dashed=DASHED_METHODS),
        )


def _handle(variant: str) -> Line2D:
    look, dashes = method(variant), (0, DASHED) if variant in DASHED_METHODS else "-"
    marker = {"marker": look.marker, "markersize": MARKER, "mec": "white", "mew": EDGE}
    return Line2D([], [], color=look.colour, linewidth=WIDTH, linestyle=dashes, **marker)
