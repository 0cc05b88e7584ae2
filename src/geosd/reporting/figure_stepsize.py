"""Learning rate and stopping step: the paper's Figure stepsize, and maps of both."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from geosd.reporting import figures
from geosd.reporting.id_ood_plane import FRAME, frame_of, mean_point, path, plane
from geosd.reporting.method_style import method, ordered, short_rate
from geosd.reporting.run_accuracies import SweepPoints, sweep_gains
from geosd.scores.score_table import ID, OOD_AVERAGE
from geosd.scores.statistics import independent_values

DASHES = (0, (3, 1.5))
SHADES = "RdBu"
"""From losses to gains, with white for no change; numbers stand in the cells."""


def stepsize_figure_points(runs: pd.DataFrame) -> pd.DataFrame:
    """Means over the runs of each rate and length, in order."""
    keys = ["run", "variant", "learning_rate", "steps"]
    return runs.groupby(keys, sort=False)[[ID, OOD_AVERAGE]].mean().reset_index()


def learning_rate_lines(configurations: pd.DataFrame) -> pd.DataFrame:
    """The full runs of each variant by learning rate."""
    full = configurations.groupby("variant")["steps"].transform("max")
    return configurations[configurations["steps"] == full].sort_values(
        "learning_rate", kind="stable"
    )


def early_stop_lines(configurations: pd.DataFrame) -> pd.DataFrame:
    """Runs of a learning rate that were stopped early, by length."""
    lengths = configurations.groupby(["variant", "learning_rate"])["steps"].transform("size")
    return configurations[lengths > 1].sort_values("steps", kind="stable")


@figures.themed
def plot(scores: pd.DataFrame, models: Sequence[str], points: SweepPoints) -> Figure:
    """Plot `figure_stepsize`: the ID-OOD plane, and maps by variant of runs stopped early."""
    runs = {model: sweep_gains(scores, model, points[model]) for model in models}
    variants = ordered(name for of_model in runs.values() for name in of_model["variant"])
    stopped = any(len(early_stop_lines(stepsize_figure_points(r))) for r in runs.values())
    wide = figures.PAGE_IN if stopped else figures.HALF_IN
    figure = Figure(figsize=(wide, 0.3 + 2.4 * len(models)), layout="constrained")
    across = 1 + (len(variants) if stopped else 0)
    grid = figure.add_gridspec(2 * len(models), across, width_ratios=[1.5, *[1] * (across - 1)])
    for row, model in enumerate(models):
        axes = figure.add_subplot(grid[2 * row : 2 * row + 2, 0])
        _plane(axes, runs[model])
        axes.set(title=model, xlabel="ID change (points)", ylabel="OOD change (points)")
        for column, variant in enumerate(variants[: across - 1]):
            of_variant = runs[model][runs[model]["variant"] == variant]
            for below, benchmark in enumerate((ID, OOD_AVERAGE)):
                panel = figure.add_subplot(grid[2 * row + below, 1 + column])
                _map(panel, of_variant, benchmark)
                panel.set_title(f"{method(variant).label}, {'ID' if benchmark == ID else 'OOD'}")
                panel.set_ylabel("" if column else "learning rate")
                panel.set_xlabel("step" if below else "")
    handles = {
        m.label: Line2D([], [], color=m.colour, marker=m.marker, ms=4, lw=1.4)
        for m in map(method, variants)
    }
    handles["learning rate"] = Line2D([], [], color="0.3", lw=1.4)
    if stopped:
        handles["stopped early"] = Line2D([], [], color="0.3", lw=0.9, ls=DASHES)
    figures.legend_below(figure, handles, handlelength=1.8, ncols=len(handles) if stopped else 2)
    return figure


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
        annot=table.map(lambda change: figures.signed(change, ".0f")),
        fmt="",
        annot_kws={"size": figures.SMALLEST_PT},
        linewidths=0.3,
        xticklabels=True,
        yticklabels=[short_rate(rate) for rate in table.index],
    )
    axes.tick_params(length=0, labelsize=figures.SMALLEST_PT, labelrotation=0)


def _plane(axes: Axes, runs: pd.DataFrame) -> None:
    """Draw the sweeps of a model on the plane of changes, with intervals of the full runs."""
    values = independent_values(runs, ID, OOD_AVERAGE)
    means = stepsize_figure_points(runs)
    plane(axes, *frame_of(means))
    full, stopped = learning_rate_lines(means), early_stop_lines(means)
    for (name, _), of_rate in stopped.groupby(["variant", "learning_rate"], sort=False):
        look = method(name)
        path(axes, of_rate, color=look.colour, ls=DASHES, lw=0.7, zorder=2)
        early = of_rate[~of_rate["run"].isin(full["run"])]
        point = {"color": look.colour, "marker": look.marker, "mfc": "white", "mew": 0.6}
        axes.plot(early[ID], early[OOD_AVERAGE], ls="", ms=2.4, zorder=3, **point)
    for name, of_variant in full.groupby("variant", sort=False):
        path(axes, of_variant, color=method(name).colour, lw=1.4, zorder=2.5)
        for size, run in zip(
            np.linspace(2.5, 5.5, len(of_variant)), of_variant["run"], strict=True
        ):
            of_run = values[values["run"] == run]
            mean_point(axes, of_run[ID], of_run[OOD_AVERAGE], method(name), size, zorder=4)
