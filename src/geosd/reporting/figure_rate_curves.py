"""Accuracy of each method over the learning rate, in and out of distribution."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import NullLocator

from geosd.reporting.figures import PAGE_IN, SHADE, legend_below, themed
from geosd.reporting.method_style import method, ordered
from geosd.reporting.run_accuracies import (
    BENCHMARKS,
    changes_from_base,
    is_at_selected_rate,
    rate_runs,
)
from geosd.reporting.specs import OutputSpec, SweepPoints
from geosd.scores.rate_selection import COLLAPSE
from geosd.scores.score_table import ID, OOD_AVERAGE

SPEC = OutputSpec(
    title="accuracy of every method over the learning rate",
    caption="""Two panels for each method, out of distribution (OOD) above and in distribution (ID)
    below: the change of accuracy from the base model of the same seed, in points, over the learning
    rate; a line for each model. Means over seeds; whiskers are one standard deviation. Rings mark
    the selected rates. In the shaded region a model is ten points or more below the base model.""",
    reads=("scores",),
    settings=("models", "points", "selected_rates"),
    swept=("learning_rate",),
    compares=("pi_0",),
    needs=("benchmarks", "sweep"),
)

LABELS = {OOD_AVERAGE: "OOD", ID: "ID"}
"""Benchmarks from above to below."""
ACROSS = 5
"""Methods side by side."""
RING = {"ls": "", "marker": "o", "ms": 5.5, "mfc": "none", "mec": "black", "mew": 0.7}


@themed
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
    figure = Figure(figsize=(PAGE_IN, 0.4 + 2.1 * down), layout="constrained")
    panels = figure.subplots(2 * down, across, squeeze=False, sharex=True, sharey=True)
    blocks = panels.reshape(down, 2, across).transpose(0, 2, 1).reshape(-1, 2)
    for block, name in zip(blocks, variants, strict=False):
        for axes, (benchmark, label) in zip(block, LABELS.items(), strict=True):
            at = (changes["variant"] == name) & (changes["benchmark"] == benchmark)
            handles = _curves(axes, changes[at], models)
            axes.set_ylabel(rf"$\Delta$ {label} (points)" if axes in panels[:, 0] else "")
        block[0].set_title(method(name).drawn)
    for block in blocks[len(variants) :]:
        for axes in block:
            axes.set_visible(False)
    for axes in blocks[: len(variants)][-across:, 1]:  # the lowest of each column
        axes.set_xlabel("learning rate")
        axes.tick_params(labelbottom=True)
    low, high = panels[0, 0].get_ylim()
    low = min(low, -1.5 * COLLAPSE)
    for axes in blocks[: len(variants)].flat:
        axes.axhspan(low, -COLLAPSE, color=SHADE, lw=0, zorder=0)
        axes.set_ylim(low, high)
    handles["selected rate"] = Line2D([], [], **RING)
    handles["collapse"] = Patch(color=SHADE)
    legend_below(figure, handles, handlelength=2.4)
    return figure


def rate_curve_points(
    scores: pd.DataFrame,
    model: str,
    points: Sequence[Mapping[str, Any]],
    selected: Mapping[str, float],
) -> pd.DataFrame:
    """The change of every run of a model from its pi_0, in points; `selected`: whether its rate is.

    A row a run and benchmark: `model`, `variant`, `learning_rate`, `seed`, `benchmark`, `change`
    too.
    """
    runs, base = rate_runs(scores, model, points)
    chosen = is_at_selected_rate(runs, selected)
    changes = runs.assign(model=model, selected=chosen, **changes_from_base(runs, base))
    keys = ["model", "variant", "learning_rate", "seed", "selected"]
    return changes.melt(keys, BENCHMARKS, "benchmark", "change")


def _curves(axes: Axes, changes: pd.DataFrame, models: Sequence[str]) -> dict[str, Line2D]:
    """Draw a line for each model; return what the legend shows."""
    shades = [str(grey) for grey in np.linspace(0, 0.62, len(models))]
    sns.lineplot(
        changes,
        x="learning_rate",
        y="change",
        hue="model",
        hue_order=models,
        palette=shades,
        style="model",
        style_order=models,
        markers=True,
        errorbar="sd",
        err_style="bars",
        err_kws={"elinewidth": 0.6},
        lw=0.9,
        markersize=3.5,
        markeredgewidth=0,
        ax=axes,
    )
    handles, labels = axes.get_legend_handles_labels()
    axes.get_legend().remove()
    chosen = changes[changes["selected"]].groupby("model")[["learning_rate", "change"]].mean()
    axes.plot(chosen["learning_rate"], chosen["change"], zorder=3, **RING)
    axes.axhline(0, color="0.6", lw=0.5, zorder=0.5)
    axes.set_xscale("log")
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set_xlabel("")
    return dict(zip(labels, handles, strict=True))
