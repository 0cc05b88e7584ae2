"""Learning rate and stopping step: the paper's Figure stepsize, and maps of both."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from geosd.reporting import figures
from geosd.reporting.id_ood_plane import (
    FRAME,
    draw_plane,
    plane_frame,
    plane_mean_point,
    plane_path,
)
from geosd.reporting.method_style import method_style, method_style_rate, ordered_methods
from geosd.reporting.run_accuracies import SweepPoints, sweep_run_gains
from geosd.scores.score_table import ID, OOD_AVERAGE
from geosd.scores.statistics import independent_statistics

DASHES = (0, (3, 1.5))
SHADES = "RdBu"
"""From losses to gains, with white for no change; numbers stand in the cells."""


def stepsize_figure_points(runs: pd.DataFrame) -> pd.DataFrame:
    """Means over the runs of each rate and length, in order."""
    keys = ["run", "variant", "learning_rate", "steps"]
    return runs.groupby(keys, sort=False)[[ID, OOD_AVERAGE]].mean().reset_index()


def figure_stepsize_rates(configurations: pd.DataFrame) -> pd.DataFrame:
    """The full runs of each variant by learning rate."""
    full = configurations.groupby("variant")["steps"].transform("max")
    return configurations[configurations["steps"] == full].sort_values(
        "learning_rate", kind="stable"
    )


def figure_stepsize_stops(configurations: pd.DataFrame) -> pd.DataFrame:
    """Runs of a learning rate that were stopped early, by length."""
    lengths = configurations.groupby(["variant", "learning_rate"])["steps"].transform("size")
    return configurations[lengths > 1].sort_values("steps", kind="stable")


@figures.themed
def plot(scores: pd.DataFrame, models: Sequence[str], points: SweepPoints) -> Figure:
    """Plot `figure_stepsize`: the ID-OOD plane, and maps by variant of runs stopped early."""
    runs = {model: sweep_run_gains(scores, model, points[model]) for model in models}
    variants = ordered_methods(name for of_model in runs.values() for name in of_model["variant"])
    stopped = any(len(figure_stepsize_stops(stepsize_figure_points(of))) for of in runs.values())
    mapped = variants if stopped else []
    width = figures.PAGE_IN if stopped else figures.HALF_IN
    figure = Figure(figsize=(width, 0.3 + 2.4 * len(models)), layout="constrained")
    widths = [1.5, *(1 for _ in mapped)]
    grid = figure.add_gridspec(2 * len(models), len(widths), width_ratios=widths)
    for number, model in enumerate(models):
        upper, lower = 2 * number, 2 * number + 1
        axes = figure.add_subplot(grid[upper : lower + 1, 0])
        _plane(axes, runs[model])
        axes.set(title=model, xlabel="ID change (points)", ylabel="OOD change (points)")
        for column, variant in enumerate(mapped, start=1):
            of_variant = runs[model][runs[model]["variant"] == variant]
            label = method_style(variant).label
            above = figure.add_subplot(grid[upper, column])
            _map(above, of_variant, ID)
            above.set(title=f"{label}, ID", xlabel="")
            below = figure.add_subplot(grid[lower, column])
            _map(below, of_variant, OOD_AVERAGE)
            below.set(title=f"{label}, OOD", xlabel="step")
            for panel in (above, below):
                panel.set_ylabel("learning rate" if column == 1 else "")
    handles = _handles(variants, stopped)
    across = len(handles) if stopped else 2
    figures.figure_legend_below(figure, handles, handlelength=1.8, ncols=across)
    return figure


def _handles(variants: Sequence[str], stopped: bool) -> dict[str, Line2D]:
    """The handles of the legend by their labels."""
    handles = {}
    for variant in variants:
        look = method_style(variant)
        line = {"color": look.colour, "marker": look.marker, "ms": 4, "lw": 1.4}
        handles[look.label] = Line2D([], [], **line)
    handles["learning rate"] = Line2D([], [], color="0.3", lw=1.4)
    if stopped:
        handles["stopped early"] = Line2D([], [], color="0.3", lw=0.9, ls=DASHES)
    return handles


def _map(axes: Axes, runs: pd.DataFrame, benchmark: str) -> None:
    """Draw the mean changes of a variant by rate and step, as colours and whole numbers."""
    table = runs.pivot_table(index="learning_rate", columns="steps", values=benchmark)
    table = table.sort_index(ascending=False)
    sns.heatmap(
        table,
        ax=axes,
        cmap=SHADES,
        vmin=-FRAME,
        vmax=FRAME,
        cbar=False,
        annot=table.map(lambda change: figures.signed_in_figure(change, ".0f")),
        fmt="",
        annot_kws={"size": figures.SMALLEST_PT},
        linewidths=0.3,
        xticklabels=True,
        yticklabels=[method_style_rate(rate) for rate in table.index],
    )
    axes.tick_params(length=0, labelsize=figures.SMALLEST_PT, labelrotation=0)


def _plane(axes: Axes, runs: pd.DataFrame) -> None:
    """Draw the sweeps of a model on the plane of changes, with intervals of the full runs."""
    values = independent_statistics(runs, ID, OOD_AVERAGE)
    means = stepsize_figure_points(runs)
    draw_plane(axes, *plane_frame(means))
    full = figure_stepsize_rates(means)
    stopped = figure_stepsize_stops(means)
    for (name, _), of_rate in stopped.groupby(["variant", "learning_rate"], sort=False):
        look = method_style(name)
        plane_path(axes, of_rate, color=look.colour, ls=DASHES, lw=0.7, zorder=2)
        early = of_rate[~of_rate["run"].isin(full["run"])]
        point = {"color": look.colour, "marker": look.marker, "mfc": "white", "mew": 0.6}
        axes.plot(early[ID], early[OOD_AVERAGE], ls="", ms=2.4, zorder=3, **point)
    for name, of_variant in full.groupby("variant", sort=False):
        plane_path(axes, of_variant, color=method_style(name).colour, lw=1.4, zorder=2.5)
        sizes = np.linspace(2.5, 5.5, len(of_variant))
        for size, run in zip(sizes, of_variant["run"], strict=True):
            of_run = values[values["run"] == run]
            plane_mean_point(
                axes, of_run[ID], of_run[OOD_AVERAGE], method_style(name), size, zorder=4
            )
