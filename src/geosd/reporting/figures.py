"""Common parts of figures: theme, widths, means with intervals, labels, titles, legends, files.

All letters are of one family, a part of Source Sans 3 that lies in `fonts/` under another name, as
its licence asks (`fonts/OFL.txt`): so a figure has the same bytes on every machine.
"""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

import matplotlib
import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.font_manager import fontManager
from matplotlib.lines import Line2D
from scipy.optimize import isotonic_regression

from geosd.files import atomic_write
from geosd.reporting.method_style import (
    BACKGROUND,
    coloured_methods,
    method_style,
    method_style_line,
    method_text_colour,
)
from geosd.scores.statistics import FEWEST_FOR_INTERVAL, student_interval

FONT = "GeoSD Sans"
SMALLEST_PT = 6.0
"""No letter of a figure is smaller; indices and powers are letters of their own, as ₀ and ², so a
figure has no mathematics set by matplotlib, which would set them smaller."""
for _file in sorted((Path(__file__).parent / "fonts").glob("*.ttf")):
    fontManager.addfont(_file)

_STYLE = Path(__file__).with_name("theme.mplstyle")
THEME: dict[str, Any] = {
    **sns.axes_style("ticks"),
    **sns.plotting_context("paper"),
    **matplotlib.rc_params_from_file(_STYLE, fail_on_error=True, use_default_template=False),
}
"""Settings of matplotlib in which figures are drawn and saved, whatever is set elsewhere."""

themed = matplotlib.rc_context(THEME)
"""Decorator of a function that draws or saves a figure: it runs in `THEME`."""

PAGE_IN = 5.5
HALF_IN = 2.65
"""The paper's text width, and that of each of two figures in a row, in inches."""
LABEL_PT = 6.5
DARK = b"@media (prefers-color-scheme: dark){:root{filter:invert(.93) hue-rotate(180deg)}}</style>"
"""Makes an SVG dark on a dark page, and keeps its hues; pages have no second file of a figure."""
SHADE = "0.92"
"""The grey of a figure's region of collapse."""


def figure_of(models: Sequence[Any], height: float) -> Figure:
    """An empty figure: as wide as the text, or half as wide for a single model."""
    width = HALF_IN if len(models) == 1 else PAGE_IN
    return Figure(figsize=(width, height), layout="constrained")


def figure_mean_line(
    axes: Axes,
    values: pd.DataFrame,
    x: str,
    y: str,
    bounds: tuple[float, float] = (-math.inf, math.inf),
    interval: bool = True,
    **line: Any,
) -> None:
    """Draw the mean of `y` at each `x` as a line, and its 95 % interval as a band within bounds.

    `values` are `independent_statistics`; of fewer than `FEWEST_FOR_INTERVAL` each is a thin
    line. `line` is of `Axes.plot`.
    """
    at_x = values.groupby(x)[y]
    means = at_x.mean()
    colour = axes.plot(means.index, means, **line)[0].get_color()
    if not interval:
        return
    if values["unit"].nunique() >= FEWEST_FOR_INTERVAL:
        ends = np.clip([student_interval(each) for _, each in at_x], *bounds).T
        axes.fill_between(means.index, *ends, color=colour, alpha=0.18, lw=0, zorder=1)
    elif values["unit"].nunique() > 1:
        for _, one in values.sort_values(x).groupby("unit"):
            axes.plot(one[x], one[y], color=colour, lw=0.5, alpha=0.5, zorder=1)


def figure_lines(
    axes: Axes,
    values: pd.DataFrame,
    x: str,
    y: str,
    variants: Sequence[str],
    bounds: tuple[float, float] = (-math.inf, math.inf),
) -> None:
    """Draw the mean lines of methods into a panel; those without a colour are grey, and behind.

    `values` are `independent_statistics` with a column `variant`, `variants` all methods of the
    figure.
    """
    strong = coloured_methods(variants)
    for name, of_method in values.groupby("variant", sort=False):
        if name in strong:
            figure_mean_line(axes, of_method, x, y, bounds, zorder=3, **method_style_line(name))
        else:
            grey = {"color": BACKGROUND, "lw": 0.8, "zorder": 2}
            figure_mean_line(axes, of_method, x, y, interval=False, **grey)


def label_figure_lines(
    axes: Axes,
    values: pd.DataFrame,
    x: str,
    y: str,
    labels: Mapping[str, str] = MappingProxyType({}),
    grey: Sequence[str] = (),
) -> None:
    """Write each `variant`'s name at its mean line's end, apart, and make room for it on the right.

    The axis ends where the lines do; all else must be drawn.
    `labels` are other words for it, `grey` the variants whose line has no colour.
    """
    figure = axes.figure
    figure.draw_without_rendering()
    pixel = figure.dpi / 72
    means = values.groupby(["variant", x], sort=False)[y].mean().sort_index(level=1)
    ends = means.groupby("variant", sort=True).tail(1)
    heights = [axes.transData.transform((at, value))[1] for (_, at), value in ends.items()]
    spaced = _push_apart(heights, 1.15 * LABEL_PT * pixel)
    widest = 0.0
    for ((name, at), value), was, height in zip(ends.items(), heights, spaced, strict=True):
        colour = BACKGROUND if name in grey else method_style(name).colour
        text = axes.annotate(
            labels.get(name, method_style(name).label),
            (at, value),
            xytext=(4, (height - was) / pixel),
            textcoords="offset points",
            va="center",
            ha="left",
            fontsize=LABEL_PT,
            color=method_text_colour(colour),
            weight="bold" if name == "geosd" else "normal",
            annotation_clip=False,
        )
        text.set_in_layout(False)
        widest = max(widest, text.get_window_extent().width + 5 * pixel)
    width, (left, _) = axes.get_window_extent().width, axes.get_xlim()
    last = max(at for _, at in ends.index)
    ticks = [tick for tick in axes.get_xticks() if left <= tick <= last]
    axes.set_xlim(left, left + (last - left) * width / (width - widest))
    axes.set_xticks(ticks)
    axes.spines["bottom"].set_bounds(left, last)


def _push_apart(values: Sequence[float], least: float) -> Sequence[float]:
    """Move heights of labels as little as possible, so that neighbours are `least` apart."""
    order = np.argsort(values, kind="stable")
    offsets = least * np.arange(len(order))
    moved = np.empty(len(order))
    moved[order] = isotonic_regression(np.asarray(values)[order] - offsets).x + offsets
    return moved


def figure_panel_title(axes: Axes, letter: str, text: str = "") -> None:
    """Write the letter of a figure's panel in bold, and whose it is, flush left above it."""
    title = axes.set_title(letter, loc="left", weight="bold")
    axes.annotate(
        f"  {text}",
        (1, 0),
        xycoords=title,
        va="bottom",
        fontsize=title.get_fontsize(),
        annotation_clip=False,
    )


def figure_legend_below(figure: Figure, handles: Mapping[str, Any], **options: Any) -> None:
    """Put one legend of a figure, of handles by their labels, in a row below all its panels."""
    compact = {"columnspacing": 1.0, "handlelength": 1.6, "handletextpad": 0.4, "borderpad": 0}
    options = {"loc": "outside lower center", "ncols": len(handles), **compact, **options}
    figure.legend(list(handles.values()), list(handles), **options)


def signed_in_figure(value: float, form: str = ".1f") -> str:
    """A change as a figure shows it, e.g. +1.2 or −0.3, and never a zero with a sign."""
    text = format(value, f"+{form}")
    return text.replace("-", "−") if float(text) else text[1:]


@themed
def save(figure: Figure, folder: Path | str, name: str) -> list[Path]:
    """Save a figure as PDF, SVG and PNG; the same figure gives the same bytes."""
    # Dates and random ids are what else would differ between two drawings of one figure.
    dates = {"pdf": ("CreationDate", "ModDate"), "svg": ("Date",), "png": ("Software",)}
    paths = [Path(folder) / f"{name}.{ending}" for ending in dates]
    for path, (ending, left_out) in zip(paths, dates.items(), strict=True):
        with atomic_write(path) as temporary:
            figure.savefig(temporary, format=ending, metadata=dict.fromkeys(left_out))
            if ending == "svg":
                temporary.write_bytes(temporary.read_bytes().replace(b"</style>", DARK, 1))
    return paths


def figure_handles(variants: Sequence[str]) -> dict[str, Line2D]:
    """The lines of a figure's legend by their labels; all grey lines have one."""
    handles = {
        method_style(name).label: Line2D([], [], **method_style_line(name))
        for name in coloured_methods(variants)
    }
    if len(handles) < len(variants):
        handles["other methods"] = Line2D([], [], color=BACKGROUND, linewidth=0.8)
    return handles
