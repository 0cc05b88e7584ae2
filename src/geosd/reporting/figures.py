"""What figures share: the theme, widths, panels, lines of methods, titles, legends, files.

All letters are of DejaVu Sans, which comes with matplotlib and has every sign that figures need.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import matplotlib
import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from geosd.files import atomic_write
from geosd.reporting.method_style import BACKGROUND, DASHED, EMPHASIZED, method, style_by_method
from geosd.scores.statistics import student_interval

FONT = "DejaVu Sans"
"""The one family, of text and of mathematics. Roots are powers: `\\sqrt` is drawn from another."""
SMALLEST_PT = 6.0
"""No letter of a figure is smaller, but for indices in a formula."""

THEME: dict[str, Any] = {
    **sns.axes_style("ticks"),
    **sns.plotting_context("paper"),
    "font.family": FONT,
    "mathtext.fontset": "dejavusans",
    "font.size": 7.5,
    "axes.titlesize": 8,
    "axes.labelsize": 7.5,
    "xtick.labelsize": 7,
    "ytick.labelsize": 7,
    "legend.fontsize": 7,
    "legend.title_fontsize": 7,
    "legend.frameon": False,
    "axes.linewidth": 0.6,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "xtick.minor.width": 0.4,
    "ytick.minor.width": 0.4,
    "xtick.major.size": 2.5,
    "ytick.major.size": 2.5,
    "xtick.minor.size": 1.5,
    "ytick.minor.size": 1.5,
    "lines.linewidth": 1.2,
    "figure.dpi": 150,
    "savefig.dpi": 300,
    "savefig.bbox": "standard",  # sizes stay what the figure asked for
    "pdf.fonttype": 42,  # text stays text for editors and reviewers
    "svg.fonttype": "path",
    "svg.hashsalt": "geosd",  # ids that are random otherwise
}
"""Settings of matplotlib in which figures are drawn and saved, whatever is set elsewhere."""

themed = matplotlib.rc_context(THEME)
"""Decorator of a function that draws or saves a figure: it runs in `THEME`."""

COLUMN_IN = 3.35
PAGE_IN = 6.9
"""Widths of one column and of the page, in inches."""
DASHED_METHODS = ("pi_0",)
"""The base model is a reference and no method."""
WIDTH, MARKER, EDGE = 1.4, 3.6, 0.3
"""Of lines in colour, of their markers and of the markers' edges, in points."""
GREY_WIDTH = 0.8
SHADE = "0.92"
"""The grey of a figure's region of collapse."""
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
    axes: Axes, runs: pd.DataFrame, x: str, y: str, variants: Sequence[str], interval: Interval
) -> None:
    """Draw the means over seeds of methods into a panel; grey are those without a colour.

    `runs` has a row for each run and point, with the columns `variant`, `x` and `y`; `variants` are
    all methods of the figure; `interval` gives both ends of a mean's from the values of its runs.
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


def panel_title(axes: Axes, letter: str, text: str = "") -> None:
    """Write the letter of a figure's panel in bold, and whose it is, flush left above it."""
    axes.set_title(
        rf"$\mathbf{{{letter}}}$  {text}" if text else rf"$\mathbf{{{letter}}}$", loc="left"
    )


def legend_below(figure: Figure, handles: Mapping[str, Any], **options: Any) -> None:
    """Put one legend of a figure, of handles by their labels, in a row below all its panels."""
    compact = {"columnspacing": 1.0, "handlelength": 1.6, "handletextpad": 0.4, "borderpad": 0}
    options = {"loc": "outside lower center", "ncols": len(handles), **compact, **options}
    figure.legend(list(handles.values()), list(handles), **options)


def power_of_ten(rate: float) -> str:
    r"""A learning rate as a figure shows it, as a power of ten.

    Example:
        >>> power_of_ten(1e-6), power_of_ten(3e-7)
        ('$10^{-6}$', '$3{\\cdot}10^{-7}$')
    """
    power = math.floor(math.log10(rate) + 1e-9)
    factor = f"{round(rate / 10**power, 3):g}"
    return f"$10^{{{power}}}$" if factor == "1" else rf"${factor}{{\cdot}}10^{{{power}}}$"


@themed
def save(figure: Figure, folder: Path | str, name: str) -> list[Path]:
    """Save a figure as PDF, SVG and PNG; the same figure gives the same bytes."""
    # Dates and random ids are what else would differ between two drawings of one figure.
    undated = {
        "pdf": {"CreationDate": None, "ModDate": None},
        "svg": {"Date": None},
        "png": {"Software": None},
    }
    paths = []
    for extension, metadata in undated.items():
        path = Path(folder) / f"{name}.{extension}"
        with atomic_write(path) as temporary:
            figure.savefig(temporary, format=extension, metadata=metadata)
        paths.append(path)
    return paths
