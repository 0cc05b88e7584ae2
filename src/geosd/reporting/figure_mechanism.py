"""The pull of one state and the drift of a whole run (the paper's Figure mechanism)."""

from collections.abc import Mapping, Sequence

import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import NullLocator

from geosd.reporting import figures
from geosd.reporting.method_style import (
    DASHED,
    DIVERGENCES,
    MARKER,
    method_labels_with_rates,
    method_style,
)
from geosd.scores.state_table import bin_states_by_overlap, state_table_of_model
from geosd.scores.statistics import independent_statistics

TRAINED_BY = {"fwdkl": "fwdkl", "revkl": "revkl", "hellinger": "geosd"}
"""The method that is trained by each divergence drawn: it has the method's colour and marker."""
BINS = 20
"""Bins of overlap from 0 to 1."""


@figures.themed
def plot(
    states: pd.DataFrame,
    drift_over_steps: pd.DataFrame,
    models: Sequence[str],
    methods: Sequence[str],
    learning_rates: Mapping[str, Mapping[str, float]],
) -> Figure:
    """Plot `figure_mechanism`: gradient norm against overlap, drift over steps; a row a model."""
    figure = Figure(figsize=(figures.PAGE_IN, 0.25 + 2.1 * len(models)), layout="constrained")
    layout = []
    for model in models:
        layout.append([f"counts {model}", f"drift {model}"])
        layout.append([f"norms {model}", f"drift {model}"])
    panels = figure.subplot_mosaic(layout, height_ratios=[1.3, 5] * len(models))
    runs = drift_over_steps[drift_over_steps["variant"].isin(methods)]
    drifts = {}
    for model in models:
        counts, norms = panels[f"counts {model}"], panels[f"norms {model}"]
        of_model = state_table_of_model(states, model)
        handles = _norms(norms, bin_states_by_overlap(of_model, BINS))
        _counts(counts, of_model, norms.get_xlim())
        figures.figure_panel_title(counts, "A", model)
        drift = panels[f"drift {model}"]
        figures.figure_panel_title(drift, "B", model)
        drifts[model] = independent_statistics(runs[runs["model"] == model], "value")
        _drift(drift, drifts[model], methods)
    figures.figure_legend_below(figure, handles, handlelength=2.2)
    for model, values in drifts.items():
        labels = method_labels_with_rates(learning_rates[model])
        figures.label_figure_lines(panels[f"drift {model}"], values, "step", "value", labels)
    return figure


def _drift(axes: Axes, values: pd.DataFrame, methods: Sequence[str]) -> None:
    """Each method's distance from the base model over training."""
    figures.figure_lines(axes, values, "step", "value", methods)
    for line in axes.lines:
        line.set_marker("")
    axes.set(xlabel="updates", ylabel="Fisher-Rao distance from π₀ (rad)", xlim=(0, None))
    axes.set_ylim(bottom=0)


def _counts(axes: Axes, states: pd.DataFrame, limits: tuple[float, float]) -> None:
    """How many positions lie at each overlap: most of them agree."""
    overlap = states["overlap"].clip(0, 1)
    sns.histplot(x=overlap, bins=40, binrange=(0, 1), color="0.6", alpha=1, lw=0, ax=axes)
    axes.set_yscale("log")
    axes.set(xlim=limits, xlabel="", ylabel="positions", xticklabels=[])
    axes.set_ylim(bottom=0.5)  # a single position has a height, too
    axes.tick_params(axis="x", length=0)
    axes.yaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_major_formatter(lambda count, _: f"{count:,.0f}" if count >= 1 else "")


def _norms(axes: Axes, binned: pd.DataFrame) -> dict[str, Line2D]:
    """Median and quartiles of the gradients' norms in each bin of overlap; the legend's lines."""
    handles = {}
    numbers = (BINS * binned["mean_overlap"] + 1e-9).astype(int).clip(upper=BINS - 1)
    in_bin = binned.groupby(numbers)
    # A bin without enough positions is empty, and a line has no part there.
    shown = range(numbers.min(), BINS)
    overlap = in_bin["mean_overlap"].first().reindex(shown)
    for name, trained in TRAINED_BY.items():
        look = method_style(trained)
        quartiles = in_bin[f"gradient_{name}"].quantile([0.25, 0.5, 0.75]).unstack()
        low, middle, high = quartiles.reindex(shown).to_numpy().T
        axes.fill_between(overlap, low, high, color=look.colour, alpha=0.16, lw=0)
        line = {"color": look.colour, "marker": look.marker, "lw": 1.2, **MARKER}
        line["ls"] = (0, DASHED) if name == "revkl" else "-"
        (handles[DIVERGENCES[name]],) = axes.plot(overlap, middle, **line)
    axes.set(xlim=(shown.start / BINS, 1), ylabel="gradient norm at the logits")
    axes.set_xlabel("overlap of student and teacher, Σ √(pq)")
    axes.set_ylim(bottom=0)
    return handles
