"""OOD pass@k of every method, with the k of the paper's Table ablation."""

from collections.abc import Sequence

import pandas as pd
from matplotlib.figure import Figure

from geosd.reporting.figures import figure_of, themed
from geosd.reporting.id_ood_plane import plane_mean_point
from geosd.reporting.method_style import method_style, ordered_methods
from geosd.scores.score_table import OOD_AVERAGE
from geosd.scores.statistics import independent_statistics
from geosd.scores.tidy import select_tidy_rows


@themed
def plot(scores: pd.DataFrame, models: Sequence[str], methods: Sequence[str]) -> Figure:
    """Plot `figure_coverage`: OOD pass@k, k the most samples of the scores, a line a method."""
    rows = select_tidy_rows(scores, benchmark=OOD_AVERAGE, metric="pass@k")
    rows = rows[(rows["k"] == rows["k"].max()) & rows["variant"].isin(methods)]
    names = ordered_methods(rows["variant"])
    figure = figure_of(models, 0.55 + 0.12 * len(names))
    grid = figure.subplots(1, len(models), squeeze=False, sharex=True, sharey=True)[0]
    for model, axes in zip(models, grid, strict=True):
        values = independent_statistics(rows[rows["model"] == model], "value")
        for name, of_method in values.groupby("variant"):
            row = pd.Series(float(names.index(name)), of_method.index)
            plane_mean_point(axes, of_method["value"], row, method_style(name), size=4)
        axes.grid(axis="y", lw=0.4, color="0.88")
        axes.tick_params(axis="y", length=0)
        axes.set(title=model, xlabel=f"OOD pass@{rows['k'].max()} (%)")
    axes.set_ylim(len(names) - 0.4, -0.6)
    axes.set_yticks(range(len(names)), [method_style(name).label for name in names])
    for tick, name in zip(grid[0].get_yticklabels(), names, strict=True):
        tick.set_fontweight("bold" if name == "geosd" else "normal")
    return figure
