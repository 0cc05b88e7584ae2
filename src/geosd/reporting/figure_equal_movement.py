"""The methods' mean paths over the steps at both ends of the dial: over ID gain, and over drift."""

from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from geosd.reporting import figures
from geosd.reporting.dial_gains import ByStudy
from geosd.reporting.method_style import method_style, ordered_methods
from geosd.reporting.movement_runs import movement_runs
from geosd.scores.equal_movement import DRIFT
from geosd.scores.movement_paths import LEVELS, STEPS, paths_of_runs
from geosd.scores.score_table import ID, OOD_AVERAGE

LOWEST = -15.0
"""OOD gain at which a panel ends; collapses lie far below."""
X_LABELS = {DRIFT: "Fisher-Rao distance from π₀ (rad)", ID: "ID gain (points)"}
PANEL_IN = 2.0
"""Height of a panel, in inches."""


@figures.themed
def plot(
    scores: ByStudy, drift: ByStudy, models: ByStudy, points: ByStudy, conflict: ByStudy
) -> Figure:
    """Plot `figure_equal_movement`: a column for each study by its conflict, a row for each x.

    Raises:
        ValueError: A study has no path over the steps.
    """
    studies = sorted(scores, key=conflict.__getitem__)
    paths = {
        study: _mean_paths(study, scores[study], drift[study], models[study], points[study])
        for study in studies
    }
    height = 0.6 + PANEL_IN * len(X_LABELS)
    figure = Figure(figsize=(figures.PAGE_IN, height), layout="constrained")
    panels = figure.subplots(len(X_LABELS), len(studies), squeeze=False, sharex="row", sharey="row")
    means = pd.concat(paths.values())
    shown = means[means[OOD_AVERAGE] >= LOWEST]
    for row, (x, label) in zip(panels, X_LABELS.items(), strict=True):
        for axes, study in zip(row, studies, strict=True):
            axes.axhline(0, color="0.55", lw=0.6, zorder=0)
            for level in LEVELS[x]:
                axes.axvline(level, color="0.55", lw=0.6, ls=(0, (1, 2)), zorder=0)
            _draw(axes, paths[study], x)
            axes.set_xlabel(label)
        row[0].set_xlim(*_ends(shown[x].clip(lower=0)))
        row[0].set_ylim(*_ends(shown[OOD_AVERAGE]))
        row[0].set_ylabel("OOD gain (points)")
    for axes, study in zip(panels[0], studies, strict=True):
        axes.set_title(f"conflict {conflict[study]:g}")
    handles = {
        method_style(name).label: Line2D([], [], **_line(name))
        for name in ordered_methods(means["variant"])
    }
    figures.figure_legend_below(figure, handles, ncols=4)
    return figure


def _mean_paths(
    study: str, scores: pd.DataFrame, drift: pd.DataFrame, models: Any, points: Any
) -> pd.DataFrame:
    """The mean over draws of each method's points over the steps of its run."""
    (model,) = models
    runs = movement_runs(scores, drift, model, points)
    over_steps = [paths for paths in paths_of_runs(runs) if paths.along == STEPS]
    if not over_steps:
        raise ValueError(
            f"{study} has no path over the steps to draw.\nHint: give its methods one learning rate"
            " and several `steps` in the grid, or leave figure_equal_movement out."
        )
    points_of_runs = over_steps[0].points
    means = points_of_runs.groupby(["variant", STEPS])[[ID, OOD_AVERAGE, DRIFT]].mean()
    return means.reset_index()


def _ends(values: pd.Series) -> tuple[float, float]:
    """The ends of an axis that begins at or below 0: a sixteenth of its length more at each."""
    low, high = min(0.0, values.min()), max(0.0, values.max())
    margin = (high - low) / 16
    return low - margin, high + margin


def _line(variant: str) -> dict[str, Any]:
    """Keywords of `Axes.plot` for a method's path; GeoSD's is the broadest, as it is compared."""
    look = method_style(variant)
    width = 1.6 if variant == "geosd" else 1.0
    return {
        "color": look.colour,
        "marker": look.marker,
        "lw": width,
        "ms": 3.4,
        "mec": "white",
        "mew": 0.3,
    }


def _draw(axes: Axes, means: pd.DataFrame, x: str) -> None:
    """Draw the mean path of each method, from π₀ through its stops."""
    for name, path in means.groupby("variant", sort=False):
        stops = path.sort_values(STEPS)
        front = 3 if name == "geosd" else 2
        axes.plot([0, *stops[x]], [0, *stops[OOD_AVERAGE]], zorder=front, **_line(name))
