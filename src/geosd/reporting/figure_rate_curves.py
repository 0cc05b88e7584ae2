"""Accuracy of each method over the learning rate, in and out of distribution."""

import math
from collections.abc import Mapping, Sequence
from itertools import cycle
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import LogLocator, NullLocator

from geosd.reporting import figures
from geosd.reporting.id_ood_plane import FRAME
from geosd.reporting.method_style import method, ordered
from geosd.reporting.method_tables import short_rate
from geosd.reporting.run_accuracies import BENCHMARKS, SweepPoints, is_at_selected_rate, sweep_gains
from geosd.scores.rate_selection import COLLAPSE
from geosd.scores.score_table import ID, OOD_AVERAGE

LABELS = {OOD_AVERAGE: "OOD", ID: "ID"}
"""Benchmarks from above to below."""
ACROSS = 5
"""Methods side by side."""
RING = {"ls": "", "marker": "o", "ms": 5.5, "mfc": "none", "mec": "black", "mew": 0.7}


@figures.themed
def plot(
    scores: pd.DataFrame,
    models: Sequence[str],
    points: SweepPoints,
    selected_rates: Mapping[str, Mapping[str, float]],
) -> Figure:
    """Plot `figure_rate_curves`: for each method, OOD and ID accuracy over the learning rate."""
    changes = pd.concat(
        [rate_curve_points(scores, m, points[m], selected_rates[m]) for m in models]
    )
    variants = ordered(changes["variant"])
    across = min(ACROSS, len(variants))
    down = math.ceil(len(variants) / across)
    figure = Figure(figsize=(figures.PAGE_IN, 0.4 + 1.75 * down), layout="constrained")
    panels = figure.subplots(2 * down, across, squeeze=False, sharex=True, sharey=True)
    blocks = panels.reshape(down, 2, across).transpose(0, 2, 1).reshape(-1, 2)
    for block, name in zip(blocks, variants, strict=False):
        for axes, (benchmark, label) in zip(block, LABELS.items(), strict=True):
            at = (changes["variant"] == name) & (changes["benchmark"] == benchmark)
            handles = _curves(axes, changes[at], models)
            axes.set_ylabel(f"Δ {label} (points)" if axes in panels[:, 0] else "")
        block[0].set_title(method(name).label)
    for block in blocks[len(variants) :]:
        for axes in block:
            axes.set_visible(False)
    for axes in blocks[: len(variants)][-across:, 1]:  # the lowest of each column
        axes.set_xlabel("learning rate")
        axes.tick_params(labelbottom=True)
    for axes in blocks[: len(variants)].flat:
        axes.axhspan(-FRAME - 2, -COLLAPSE, color=figures.SHADE, lw=0, zorder=0)
        axes.set_ylim(-FRAME - 2, FRAME)
    handles["selected rate"] = Line2D([], [], **RING)
    handles["collapse"] = Patch(color=figures.SHADE)
    figures.legend_below(figure, handles, handlelength=2.4)
    return figure


def rate_curve_points(
    scores: pd.DataFrame,
    model: str,
    points: Sequence[Mapping[str, Any]],
    selected: Mapping[str, float],
) -> pd.DataFrame:
    """The change of every run of a model from its pi_0, in points; `selected`: whether its rate is.

    A row a run and benchmark: `model`, `variant`, `learning_rate`, `seed`, `draw`, `benchmark`,
    `change` too.
    """
    runs = sweep_gains(scores, model, points)
    changes = runs.assign(model=model, selected=is_at_selected_rate(runs, selected))
    keys = ["model", "variant", "learning_rate", "seed", "draw", "selected"]
    return changes.melt(keys, BENCHMARKS, "benchmark", "change")


def _curves(axes: Axes, changes: pd.DataFrame, models: Sequence[str]) -> dict[str, Line2D]:
    """Draw a line for each model; return what the legend shows."""
    shades = [str(grey) for grey in np.linspace(0, 0.62, len(models))]
    looks = zip(models, shades, cycle("osD"), cycle(("-", "--", ":")), strict=False)
    handles = {}
    for model, shade, marker, dashes in looks:
        values = figures.independent_values(changes[changes["model"] == model], "change")
        line = {"color": shade, "marker": marker, "ms": 2.6, "lw": 0.9, "ls": dashes, "mew": 0}
        figures.mean_line(
            axes, values.sort_values("learning_rate"), "learning_rate", "change", **line
        )
        handles[model] = Line2D([], [], **line)
        means = values.groupby("learning_rate")["change"].mean()
        far = means.index[means < -FRAME]
        axes.plot(far, np.full(len(far), -FRAME - 0.6), "v", color=shade, ms=3.5, mew=0)
    chosen = changes[changes["selected"]].groupby("model")[["learning_rate", "change"]].mean()
    axes.plot(chosen["learning_rate"], chosen["change"], zorder=3, **RING)
    axes.axhline(0, color="0.6", lw=0.5, zorder=0.5)
    axes.set_xscale("log")
    axes.xaxis.set_major_locator(LogLocator(numticks=3))
    axes.xaxis.set_major_formatter(lambda rate, _: short_rate(rate))
    axes.xaxis.set_minor_locator(NullLocator())
    return handles
