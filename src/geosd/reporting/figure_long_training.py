"""Drift and OOD gain over the steps of long trainings: a column for each refresh."""

from collections.abc import Sequence

import pandas as pd
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from geosd.reporting import figures
from geosd.reporting.factorial_runs import DIVERGENCE, DIVERGENCES
from geosd.reporting.figure_factorial import LOOKS
from geosd.reporting.long_runs import REFRESH, LongRuns, long_run_refresh_words, long_run_steps
from geosd.reporting.method_style import method_style
from geosd.scores.equal_movement import DRIFT
from geosd.scores.rate_selection import COLLAPSE
from geosd.scores.score_table import ID, OOD_AVERAGE
from geosd.scores.statistics import independent_statistics

ROWS = {DRIFT: "Distance from π₀ (rad)", ID: "ID gain (points)", OOD_AVERAGE: "OOD gain (points)"}


@figures.themed
def plot(
    scores: pd.DataFrame, drift: pd.DataFrame, models: Sequence[str], long_runs: LongRuns
) -> Figure:
    """Plot `figure_long_training`: a row for drift and each gain, a line for each divergence."""
    stops = long_run_steps(scores, drift, models[0], long_runs)
    steps = int(stops["steps"].max())
    refreshes = sorted(stops[REFRESH].unique())
    names = [name for name in DIVERGENCES if name in set(stops[DIVERGENCE])]
    figure = Figure(figsize=(figures.PAGE_IN, 0.5 + 1.45 * len(ROWS)), layout="constrained")
    grid = figure.subplots(len(ROWS), len(refreshes), squeeze=False, sharex=True, sharey="row")
    for row, (value, label) in zip(grid, ROWS.items(), strict=True):
        for axes, refresh in zip(row, refreshes, strict=True):
            if value != DRIFT:
                axes.axhline(0, color="0.55", lw=0.6, zorder=0)
            if value == OOD_AVERAGE:
                axes.axhline(-COLLAPSE, color="0.55", lw=0.6, ls=(0, (1, 2)), zorder=0)
            _lines(axes, stops[stops[REFRESH] == refresh], value, names)
        row[0].set_ylabel(label)
    for axes, refresh in zip(grid[0], refreshes, strict=True):
        axes.set_title(f"anchor refreshed: {long_run_refresh_words(refresh, steps)}")
    for axes in grid[-1]:
        axes.set_xlabel("step")
    handles = {
        DIVERGENCES[name]: Line2D([], [], color=look.colour, marker=look.marker, ms=3.4, lw=1.3)
        for name in names
        for look in [method_style(LOOKS[name])]
    }
    figures.figure_legend_below(figure, handles, handlelength=2.2)
    return figure


def _lines(axes, stops: pd.DataFrame, value: str, names: Sequence[str]) -> None:
    """Draw the mean line of each divergence from step 0, with its interval over draws."""
    for name in names:
        runs = stops[stops[DIVERGENCE] == name][["seed", "draw", "steps", value]]
        start = runs[["seed", "draw"]].drop_duplicates().assign(steps=0, **{value: 0.0})
        values = independent_statistics(pd.concat([start, runs]), value)
        look = method_style(LOOKS[name])
        line = {"color": look.colour, "marker": look.marker, "ms": 2.8, "mew": 0, "lw": 1.1}
        figures.figure_mean_line(axes, values, "steps", value, **line)
