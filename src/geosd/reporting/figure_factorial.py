"""The paths of a factorial of GeoSD's parts: OOD gain over ID gain, and over drift."""

from collections.abc import Sequence

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from geosd.reporting import figures
from geosd.reporting.factorial_runs import (
    DIVERGENCE,
    DIVERGENCES,
    OPTIMISER,
    OPTIMISERS,
    RATIO,
    Parts,
    factorial_run_stops,
)
from geosd.reporting.method_style import method_style
from geosd.scores.equal_movement import DRIFT, EQUAL_DRIFT, EQUAL_ID_GAIN
from geosd.scores.score_table import ID, OOD_AVERAGE

LOOKS = {"hellinger": "geosd", "jsd": "jsd", "fwdkl": "fwdkl", "revkl": "revkl"}
"""The method whose colour and marker a divergence has."""
DASHES = ("-", (0, (4, 1.5)), (0, (1, 1.2)))
"""Of the ratios, ascending."""
LOWEST = -15.0
"""Points at which a panel ends, on either axis; collapses lie far below."""
PANELS = {
    ID: ("ID gain (points)", EQUAL_ID_GAIN),
    DRIFT: ("Fisher-Rao distance from π₀ (rad)", EQUAL_DRIFT),
}


@figures.themed
def plot(scores: pd.DataFrame, drift: pd.DataFrame, models: Sequence[str], parts: Parts) -> Figure:
    """Plot `figure_factorial`: a row for each optimiser, a line for each cell of the factorial."""
    stops = factorial_run_stops(scores, drift, models[0], parts)
    keys = [DIVERGENCE, RATIO, OPTIMISER, "steps"]
    means = stops.groupby(keys, sort=False)[[ID, OOD_AVERAGE, DRIFT]].mean().reset_index()
    rules = [name for name in OPTIMISERS if name in set(means[OPTIMISER])]
    dashes = dict(zip(sorted(means[RATIO].unique()), DASHES, strict=False))
    figure = Figure(figsize=(figures.PAGE_IN, 0.5 + 1.9 * len(rules)), layout="constrained")
    panels = figure.subplots(len(rules), len(PANELS), squeeze=False, sharex="col", sharey=True)
    for rule, row in zip(rules, panels, strict=True):
        of_rule = means[means[OPTIMISER] == rule]
        for axes, (x, (label, at)) in zip(row, PANELS.items(), strict=True):
            axes.axhline(0, color="0.55", lw=0.6, zorder=0)
            axes.axvline(at, color="0.55", lw=0.6, ls=(0, (1, 2)), zorder=0)
            _paths(axes, of_rule, x, dashes)
            axes.set_xlabel(label if rule == rules[-1] else "")
        row[0].set_ylabel(f"{OPTIMISERS[rule]}\nOOD gain (points)")
    shown = means[means[OOD_AVERAGE] >= LOWEST]
    panels[0][0].set_xlim(_ends(shown[ID]))
    panels[0][1].set_xlim(-0.1 * shown[DRIFT].max(), 1.1 * shown[DRIFT].max())
    panels[0][0].set_ylim(_ends(means[OOD_AVERAGE]))
    handles = {
        DIVERGENCES[name]: Line2D([], [], color=look.colour, marker=look.marker, ms=3.4, lw=1.3)
        for name in DIVERGENCES
        if name in set(means[DIVERGENCE])
        for look in [method_style(LOOKS[name])]
    }
    for ratio, dash in dashes.items():
        handles[f"ratio {ratio:g}"] = Line2D([], [], color="0.3", lw=1.3, ls=dash)
    figures.figure_legend_below(figure, handles, handlelength=2.2)
    return figure


def _ends(gains: pd.Series) -> tuple[float, float]:
    """The ends of an axis of gains: a point more than the largest, and than the lowest shown."""
    return max(LOWEST, min(0.0, gains.min()) - 1), max(0.0, gains.max()) + 1


def _paths(axes: Axes, means: pd.DataFrame, x: str, dashes: dict[float, object]) -> None:
    """Draw the mean path of each cell, from π₀ through its stops."""
    for (divergence, ratio), path in means.groupby([DIVERGENCE, RATIO], sort=False):
        look = method_style(LOOKS[divergence])
        stops = path.sort_values("steps")
        line = {"color": look.colour, "lw": 1.1, "ls": dashes[ratio]}
        axes.plot([0, *stops[x]], [0, *stops[OOD_AVERAGE]], zorder=2, **line)
        points = {"color": look.colour, "marker": look.marker, "ms": 2.8, "mew": 0}
        axes.plot(stops[x], stops[OOD_AVERAGE], ls="", zorder=3, **points)
