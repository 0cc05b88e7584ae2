"""Each method's path over the learning rates through the ID-OOD plane."""

from collections.abc import Mapping, Sequence
from itertools import cycle
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from geosd.reporting.figures import SHADE, figure_legend_below, figure_of, themed
from geosd.reporting.id_ood_plane import draw_plane, plane_frame, plane_path
from geosd.reporting.method_style import method_style, method_styles_by_kind
from geosd.reporting.run_accuracies import SweepPoints, sweep_run_gains
from geosd.scores.collapse import COLLAPSE
from geosd.scores.rate_selection import is_at_configured_rate
from geosd.scores.score_table import ID, OOD_AVERAGE
from geosd.scores.statistics import independent_statistics

SMALLEST, LARGEST = 2.0, 5.0
"""Sizes of the markers of the smallest and the largest rate, in points."""
PATH = 2
"""How far in front the coloured paths lie (`zorder`)."""
DASHES = ("-", (0, (4, 1.2)), (0, (1, 1)), (0, (4, 1, 1, 1)))
"""Of the methods of one row: they share a marker."""


@themed
def plot(
    scores: pd.DataFrame,
    models: Sequence[str],
    points: SweepPoints,
    learning_rates: Mapping[str, Mapping[str, float]],
) -> Figure:
    """Plot `figure_rates`: each model's paths over the learning rates, a row a kind of method."""
    means = _mean_gains(scores, models, points)
    low, high = plane_frame(means)
    rows = method_styles_by_kind(means["variant"])
    looks = {}
    for variants in rows.values():
        for name, dashes in zip(variants, cycle(DASHES), strict=False):
            looks[name] = _look(name, dashes)
    figure = figure_of(models, 0.75 + 1.25 * len(rows))
    panels = figure.subplots(len(rows), len(models), squeeze=False, sharex=True, sharey=True)
    for model, column in zip(models, panels.T, strict=True):
        of_model = means[means["model"] == model].sort_values("learning_rate", kind="stable")
        configured = is_at_configured_rate(of_model, learning_rates[model])
        of_model = of_model.assign(configured=configured)
        for axes, variants in zip(column, rows.values(), strict=True):
            draw_plane(axes, low, high)
            axes.axvspan(low[0], -COLLAPSE, color=SHADE, lw=0, zorder=0)
            axes.axhspan(low[1], -COLLAPSE, color=SHADE, lw=0, zorder=0)
            _paths(axes, of_model, {name: looks[name] for name in variants})
        column[0].set_title(model)
        column[-1].set_xlabel("ID gain (points)")
    for axes, kind in zip(panels[:, 0], rows, strict=True):
        axes.set_ylabel(f"{kind}\nOOD gain (points)")
    handles = _handles(looks)
    if min(*low) < -COLLAPSE:
        handles["collapse"] = Patch(color=SHADE)
    across = 7 if len(models) > 1 else 3
    figure_legend_below(figure, handles, ncols=across, handlelength=2)
    return figure


def _mean_gains(scores: pd.DataFrame, models: Sequence[str], points: SweepPoints) -> pd.DataFrame:
    """The mean ID and OOD gain of each run: `model`, `run`, `variant`, `learning_rate`, gains."""
    of_runs = [
        sweep_run_gains(scores, model, points[model]).assign(model=model) for model in models
    ]
    gains = independent_statistics(pd.concat(of_runs), ID, OOD_AVERAGE)
    by_run = gains.groupby(["model", "run", "variant", "learning_rate"], sort=False)
    return by_run[[ID, OOD_AVERAGE]].mean().reset_index()


def _look(variant: str, dashes: Any) -> dict[str, Any]:
    look = method_style(variant)
    return {"color": look.colour, "marker": look.marker, "ls": dashes}


def _handles(looks: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """The handles of the legend by their labels: of methods with their looks, and of rates."""
    handles: dict[str, Any] = {}
    for name, look in looks.items():
        handles[method_style(name).label] = Line2D([], [], ms=LARGEST - 1, mew=0, **look)
    dot = {"color": "0.6", "marker": "o", "ls": ""}
    handles["smallest"] = Line2D([], [], ms=SMALLEST, mew=0, **dot)
    handles["largest rate"] = Line2D([], [], ms=LARGEST, mew=0, **dot)
    handles["configured rate"] = Line2D([], [], ms=LARGEST, mec="black", mew=0.9, **dot)
    return handles


def _paths(axes: Axes, means: pd.DataFrame, looks: Mapping[str, Mapping[str, Any]]) -> None:
    """Draw the paths of a model's methods, those with a look in it and with a point a rate."""
    rates = means["learning_rate"]
    ends = np.log([rates.min(), rates.max()])
    for name, of_method in means.groupby("variant", sort=False):
        if name not in looks:
            grey = {"color": "0.75", "lw": 0.5, "zorder": 1}
            axes.plot([0, *of_method[ID]], [0, *of_method[OOD_AVERAGE]], **grey)
            continue
        look = looks[name]
        colour = look["color"]
        plane_path(axes, of_method, lw=1.0, zorder=PATH, color=colour, ls=look["ls"])
        sizes = np.interp(np.log(of_method["learning_rate"]), ends, (SMALLEST, LARGEST))
        points = of_method[[ID, OOD_AVERAGE, "configured"]].itertuples(index=False)
        for (x, y, configured), size in zip(points, sizes, strict=True):
            edge = {"mew": 0, "zorder": 3}
            if configured:
                edge = {"mew": 0.9, "mec": "black", "zorder": 4}
            axes.plot(x, y, ms=size, marker=look["marker"], color=colour, ls="", **edge)
