"""Each method's path over the learning rates through the ID-OOD plane."""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from geosd.reporting.figures import SHADE, figure_of, legend_below, themed
from geosd.reporting.id_ood_plane import frame_of, path, plane
from geosd.reporting.method_style import method, methods_by_kind
from geosd.reporting.run_accuracies import SweepPoints, sweep_gains
from geosd.scores.rate_selection import COLLAPSE, is_at_configured_rate
from geosd.scores.score_table import ID, OOD_AVERAGE
from geosd.scores.statistics import independent_values

SIZES = (2.0, 5.0)
"""Of the markers of the smallest and the largest rate, in points."""
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
    sweeps = {m: sweep_gains(scores, m, points[m]).assign(model=m) for m in models}
    gains = independent_values(pd.concat(sweeps.values()), ID, OOD_AVERAGE)
    keys = ["model", "run", "variant", "learning_rate"]
    means = gains.groupby(keys, sort=False)[[ID, OOD_AVERAGE]].mean().reset_index()
    low, high = frame_of(means)
    rows = methods_by_kind(means["variant"])
    figure = figure_of(models, 0.75 + 1.25 * len(rows))
    panels = figure.subplots(len(rows), len(models), squeeze=False, sharex=True, sharey=True)
    for model, column in zip(models, panels.T, strict=True):
        of_model = means[means["model"] == model].sort_values("learning_rate", kind="stable")
        at_configured = is_at_configured_rate(of_model, learning_rates[model])
        for axes, variants in zip(column, rows.values(), strict=True):
            plane(axes, low, high)
            axes.axvspan(low[0], -COLLAPSE, color=SHADE, lw=0, zorder=0)
            axes.axhspan(low[1], -COLLAPSE, color=SHADE, lw=0, zorder=0)
            _paths(axes, of_model.assign(configured=at_configured), variants)
        column[0].set_title(model)
        column[-1].set_xlabel("ID gain (points)")
    for axes, kind in zip(panels[:, 0], rows, strict=True):
        axes.set_ylabel(f"{kind}\nOOD gain (points)")
    looks = {method(v).label: _line(v, i) for of in rows.values() for i, v in enumerate(of)}
    handles = {
        label: Line2D([], [], ms=SIZES[1] - 1, mew=0, **look) for label, look in looks.items()
    }
    dot = {"color": "0.6", "marker": "o", "ls": ""}
    handles["smallest"] = Line2D([], [], ms=SIZES[0], mew=0, **dot)
    handles["largest rate"] = Line2D([], [], ms=SIZES[1], mew=0, **dot)
    handles["configured rate"] = Line2D([], [], ms=SIZES[1], mec="black", mew=0.9, **dot)
    if min(*low) < -COLLAPSE:
        handles["collapse"] = Patch(color=SHADE)
    across = 7 if len(models) > 1 else 3
    legend_below(figure, handles, ncols=across, handlelength=2)
    return figure


def _line(variant: str, number: int) -> dict[str, object]:
    look = method(variant)
    return {"color": look.colour, "marker": look.marker, "ls": DASHES[number % len(DASHES)]}


def _paths(axes: Axes, means: pd.DataFrame, variants: Sequence[str]) -> None:
    """Draw the paths of a model's methods, those of one row in colour and with a point a rate."""
    ends = np.log([means["learning_rate"].min(), means["learning_rate"].max()])
    for name, of_method in means.groupby("variant", sort=False):
        if name not in variants:
            grey = {"color": "0.75", "lw": 0.5, "zorder": 1}
            axes.plot([0, *of_method[ID]], [0, *of_method[OOD_AVERAGE]], **grey)
            continue
        look = _line(name, variants.index(name))
        marker = {"marker": look.pop("marker"), "color": look["color"], "ls": ""}
        path(axes, of_method, lw=1.0, zorder=PATH, **look)
        sizes = np.interp(np.log(of_method["learning_rate"]), ends, SIZES)
        at = of_method[[ID, OOD_AVERAGE, "configured"]].itertuples(index=False)
        for (x, y, configured), size in zip(at, sizes, strict=True):
            edge = (
                {"mec": "black", "mew": 0.9, "zorder": 4} if configured else {"mew": 0, "zorder": 3}
            )
            axes.plot(x, y, ms=size, **marker, **edge)
