"""The forest plot of a ledger of claims: each estimate with its interval, beside the paper's."""

import math
import textwrap
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from geosd.claims.finding import ALL_MODELS
from geosd.reporting.figures import PAGE_IN, SHADE, figure_legend_below, themed

COLOURS = {"agrees": "#00694e", "opposite": "#a33c00", "too small to tell": "#777777"}
LARGE_MARGIN = 50
"""In points: claims of a share near 100 % have a panel of their own, or no effect could be read."""
LINE_IN = 0.135
"""The height of a line of a label. Other heights are in lines."""
GAP = 0.35
"""A row has the lines of its label, and this more."""
AXIS_IN = 0.35
"""The height of a panel's axis with its label."""
UNIT_IN = AXIS_IN + 2 * GAP * LINE_IN
"""The height of a panel without its rows: its axis, and a gap above and below."""
LEGEND_IN = 0.4
LABEL_PT = 6.5
LABEL_CHARACTERS = 58
"""The longest line of a label."""
AXIS = {
    "points": "effect, percentage points",
    "share": "share, percent",
    "rad": "effect, radians",
    "norm": "effect, norm of the gradient",
}
NUMBERS = ("effect", "low", "high", "claimed_from", "claimed_to", "paper_effect")
_DIAMOND = {
    "linestyle": "",
    "marker": "D",
    "markersize": 3.5,
    "markerfacecolor": "white",
    "markeredgecolor": "0.2",
    "markeredgewidth": 0.8,
}
"""The paper's number."""


@themed
def plot_forest(ledger: pd.DataFrame) -> Figure:
    """Plot the exercised claims of a ledger, a panel for each unit.

    A claim has the line over all models, or without one a line for each model. An interval that
    leaves the panel ends in an arrow.
    """
    rows = _drawn_rows(ledger)
    if rows.empty:
        figure = Figure(figsize=(PAGE_IN, 4 * LINE_IN))
        figure.text(0.5, 0.5, "no claim was exercised", ha="center", va="center")
        return figure
    units = [unit for unit in AXIS if unit in set(rows["unit"])]
    heights = [rows.loc[rows["unit"] == unit, "height"].sum() + 2 * GAP for unit in units]
    height_in = LINE_IN * sum(heights) + AXIS_IN * len(units) + LEGEND_IN
    figure = Figure(figsize=(PAGE_IN, height_in), layout="constrained")
    panels = figure.subplots(len(units), 1, height_ratios=heights, squeeze=False)
    for axes, unit in zip(panels[:, 0], units, strict=True):
        _panel(axes, rows[rows["unit"] == unit])
        axes.set_xlabel(AXIS[unit])
    figure_legend_below(figure, _handles(rows))
    return figure


def forest_pages(ledger: pd.DataFrame, height_in: float) -> list[pd.DataFrame]:
    """Split the exercised claims of a ledger; `plot_forest` draws a part on a page.

    Claims of one unit follow one another. A claim whose rows alone are too many has a page.

    Args:
        height_in: The largest height of a figure, in inches.
    """
    rows = _drawn_rows(ledger)
    pages: list[list[str]] = []
    left_in = 0.0
    for unit in AXIS:
        left_in -= UNIT_IN
        for claim, of_claim in rows[rows["unit"] == unit].groupby("claim", sort=False):
            needed_in = LINE_IN * of_claim["height"].sum()
            if needed_in > left_in or not pages:
                pages.append([])
                left_in = height_in - LEGEND_IN - UNIT_IN
            pages[-1].append(str(claim))
            left_in -= needed_in
    return [ledger[ledger["claim"].astype(str).isin(page)] for page in pages]


def _handles(rows: pd.DataFrame) -> dict[str, Any]:
    """The handles of the legend by their labels."""
    words = [word for word in COLOURS if word in set(rows["word"])] or ["estimate"]
    handles: dict[str, Any] = {}
    for word in words:
        colour = COLOURS.get(word, "black")
        handles[word] = Line2D([], [], color=colour, marker="o", markersize=3.5, linewidth=1.2)
    if rows["paper_effect"].notna().any():
        handles["the paper's number"] = Line2D([], [], **_DIAMOND)
    handles["what the paper claims"] = Patch(color=SHADE)
    return handles


def _drawn_rows(ledger: pd.DataFrame) -> pd.DataFrame:
    """The rows that are drawn, with their labels and heights, numbers as numbers."""
    exercised = ledger[ledger["unit"].isin(AXIS) & (ledger["word"] != "not exercised")]
    over_all = exercised["model"] == ALL_MODELS
    pooled = exercised.loc[over_all, "claim"]
    rows = exercised[over_all | ~exercised["claim"].isin(pooled)].copy()
    for name in NUMBERS:
        rows[name] = pd.to_numeric(rows[name])
    margins = rows[["claimed_from", "claimed_to"]].abs()
    largest = margins.where(np.isfinite(margins)).max(axis=1)
    rows.loc[largest > LARGE_MARGIN, "unit"] = "share"
    rows["label"] = _labels(rows)
    rows["height"] = [label.count("\n") + 1 + GAP for label in rows["label"]]
    return rows


def _labels(rows: pd.DataFrame) -> list[str]:
    """A claim's statement at its first row, and the model where it has several rows."""
    claims, seen, labels = rows["claim"], set(), []
    several = claims.duplicated(keep=False)
    for row, has_model in zip(rows.to_dict("records"), several, strict=True):
        words = [] if row["claim"] in seen else [row["statement"]]
        if has_model:
            words.append(f"\N{MIDDLE DOT} {row['model']}")
        seen.add(row["claim"])
        label = " ".join(words)
        labels.append(textwrap.fill(label, LABEL_CHARACTERS, break_on_hyphens=False))
    return labels


def _panel(axes: Axes, rows: pd.DataFrame) -> None:
    """Draw the rows of a unit below one another; intervals do not widen the panel."""
    numbers = rows[["effect", "paper_effect", "claimed_from", "claimed_to"]].to_numpy()
    seen = numbers[np.isfinite(numbers)]
    margin = 0.25 * (np.ptp(seen) or 1.0)
    left = seen.min() - margin
    right = seen.max() + margin
    centres = rows["height"].cumsum() - rows["height"] / 2
    for y, row in zip(centres, rows.to_dict("records"), strict=True):
        _row(axes, y, row, left, right)
    if left <= 0 <= right:
        axes.axvline(0, color="0.5", linewidth=0.6, zorder=1)
    axes.set_yticks(centres, rows["label"], fontsize=LABEL_PT, linespacing=1.05)
    axes.tick_params(axis="y", length=0, pad=5)
    axes.set(xlim=(left, right), ylim=(rows["height"].sum() + GAP, -GAP))
    axes.spines["left"].set_visible(False)


def _row(axes: Axes, y: float, row: Mapping[str, Any], left: float, right: float) -> None:
    """Draw the claimed values, the interval, the paper's number and the effect at a height."""
    start = max(row["claimed_from"], left)
    end = min(row["claimed_to"], right)
    axes.barh(y, end - start, row["height"] - GAP, left=start, color=SHADE, zorder=0)
    colour = COLOURS.get(row["word"], "black")
    if not math.isnan(row["low"]):
        ends = (max(row["low"], left), min(row["high"], right))
        axes.plot(ends, (y, y), color=colour, linewidth=1.2, solid_capstyle="butt")
        arrow = {"color": colour, "markersize": 3, "clip_on": False}
        if row["low"] < left:
            axes.plot(left, y, "<", **arrow)
        if row["high"] > right:
            axes.plot(right, y, ">", **arrow)
    axes.plot(row["paper_effect"], y, zorder=4, **_DIAMOND)
    axes.plot(row["effect"], y, "o", color=colour, markersize=3.5, zorder=5)
