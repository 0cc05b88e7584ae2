"""The forest plot of a ledger of claims: each estimate with its interval, beside the paper's."""

import math
import textwrap

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from geosd.claims.finding import ALL_MODELS
from geosd.reporting.figures import PAGE_IN, SHADE, legend_below, themed

COLOURS = {"agrees": "#00694e", "opposite": "#a33c00", "too small to tell": "#777777"}
LARGE_MARGIN = 50
"""In points: claims of a share near 100 % have a panel of their own, or no effect could be read."""
LINE_IN, GAP, LABEL_PT, LABEL_CHARACTERS = 0.135, 0.35, 6.5, 58
"""Heights are in lines: a row has the lines of its label, and GAP more."""
AXIS = {
    "points": "effect, percentage points",
    "share": "share, percent",
    "rad": "effect, radians",
    "norm": "effect, norm of the gradient",
}


@themed
def plot_forest(ledger: pd.DataFrame) -> Figure:
    """Plot the exercised claims of a ledger, a panel for each unit.

    A claim has the line over all models, or without one a line for each model. An interval that
    leaves the panel ends in an arrow.
    """
    rows = _lines(ledger)
    if rows.empty:
        figure = Figure(figsize=(PAGE_IN, 4 * LINE_IN))
        figure.text(0.5, 0.5, "no claim was exercised", ha="center", va="center")
        return figure
    units = [unit for unit in AXIS if unit in set(rows["unit"])]
    heights = [rows.loc[rows["unit"] == unit, "height"].sum() + 2 * GAP for unit in units]
    size = PAGE_IN, LINE_IN * sum(heights) + 0.35 * len(units) + 0.4
    figure = Figure(figsize=size, layout="constrained")
    panels = figure.subplots(len(units), 1, height_ratios=heights, squeeze=False)
    for axes, unit in zip(panels[:, 0], units, strict=True):
        _panel(axes, rows[rows["unit"] == unit])
        axes.set_xlabel(AXIS[unit])
    ours = {"marker": "o", "markersize": 3.5, "linewidth": 1.2}
    words = [word for word in COLOURS if word in set(rows["word"])] or ["estimate"]
    handles = {word: Line2D([], [], color=COLOURS.get(word, "black"), **ours) for word in words}
    if rows["paper_effect"].notna().any():
        handles["the paper's number"] = Line2D([], [], **_DIAMOND)
    legend_below(figure, handles | {"what the paper claims": Patch(color=SHADE)})
    return figure


_DIAMOND = {"linestyle": "", "marker": "D", "markersize": 3.5, "markerfacecolor": "white"}
_DIAMOND |= {"markeredgecolor": "0.2", "markeredgewidth": 0.8}


def _lines(ledger: pd.DataFrame) -> pd.DataFrame:
    """The rows that are drawn, with their labels, numbers as numbers."""
    drawn = ledger[ledger["unit"].isin(AXIS) & (ledger["word"] != "not exercised")]
    pooled = set(drawn.loc[drawn["model"] == ALL_MODELS, "claim"])
    rows = drawn[(drawn["model"] == ALL_MODELS) | ~drawn["claim"].isin(pooled)].copy()
    for name in ("effect", "low", "high", "claimed_from", "claimed_to", "paper_effect"):
        rows[name] = pd.to_numeric(rows[name])
    margins = rows[["claimed_from", "claimed_to"]].abs()
    rows.loc[margins.where(np.isfinite(margins)).max(axis=1) > LARGE_MARGIN, "unit"] = "share"
    several = rows.groupby("claim")["model"].transform("size") > 1
    model = np.where(several, "\N{MIDDLE DOT} " + rows["model"], "")
    first = ~rows["claim"].duplicated()
    labels = np.where(first, rows["statement"] + np.where(several, " ", "") + model, model)
    rows["label"] = [textwrap.fill(t, LABEL_CHARACTERS, break_on_hyphens=False) for t in labels]
    rows["height"] = [label.count("\n") + 1 + GAP for label in rows["label"]]
    return rows


def _panel(axes: Axes, rows: pd.DataFrame) -> None:
    seen = rows[["effect", "paper_effect", "claimed_from", "claimed_to"]].to_numpy().ravel()
    seen = seen[np.isfinite(seen)]
    margin = 0.25 * (np.ptp(seen) or 1.0)
    left, right = seen.min() - margin, seen.max() + margin
    centres = rows["height"].cumsum() - rows["height"] / 2
    for y, row in zip(centres, rows.to_dict("records"), strict=True):
        start, end = max(row["claimed_from"], left), min(row["claimed_to"], right)
        axes.barh(y, end - start, row["height"] - GAP, left=start, color=SHADE, zorder=0)
        colour = COLOURS.get(row["word"], "black")
        if not math.isnan(row["low"]):
            ends = max(row["low"], left), min(row["high"], right)
            axes.plot(ends, (y, y), color=colour, linewidth=1.2, solid_capstyle="butt")
            for cut, at, arrow in zip(
                (row["low"] < left, row["high"] > right), ends, "<>", strict=True
            ):
                if cut:
                    axes.plot(at, y, arrow, color=colour, markersize=3, clip_on=False)
        axes.plot(row["paper_effect"], y, zorder=4, **_DIAMOND)
        axes.plot(row["effect"], y, "o", color=colour, markersize=3.5, zorder=5)
    if left <= 0 <= right:
        axes.axvline(0, color="0.5", linewidth=0.6, zorder=1)
    axes.set_yticks(centres, rows["label"], fontsize=LABEL_PT, linespacing=1.05)
    axes.tick_params(axis="y", length=0, pad=5)
    axes.set(xlim=(left, right), ylim=(rows["height"].sum() + GAP, -GAP))
    axes.spines["left"].set_visible(False)
