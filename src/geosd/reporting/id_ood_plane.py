"""The plane of accuracy in and out of distribution: whiskers, paths, the base model, labels."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from geosd.reporting.label_placement import LabelledPoint, place_labels
from geosd.reporting.method_style import method, text_colour
from geosd.scores.score_table import ID, OOD_AVERAGE


def plane_whiskers(
    axes: Axes,
    runs: pd.DataFrame,
    by: str,
    errorbar: object,
    alpha: float,
    width: float = 0.6,
    zorder: float = 1.5,
    plane: Sequence[str] = (ID, OOD_AVERAGE),
) -> None:
    """Draw error bars in x and y, columns `plane`, around the mean of the runs of each point.

    `by` is the column of the runs that names the point, `errorbar` is seaborn's, e.g. "sd".
    """
    x, y = plane
    colours = {
        point: method(name).colour for point, name in zip(runs[by], runs["variant"], strict=True)
    }
    means = runs.groupby(by, sort=False)[[x, y]].transform("mean")
    for orient, centred in (("x", {x: means[x]}), ("y", {y: means[y]})):
        sns.lineplot(
            runs.assign(**centred),
            x=x,
            y=y,
            hue=by,
            orient=orient,
            errorbar=errorbar,
            err_style="bars",
            err_kws={"elinewidth": width, "zorder": zorder},
            linestyle="",
            legend=False,
            palette=colours,
            alpha=alpha,
            ax=axes,
        )


def plane_paths(axes: Axes, table: pd.DataFrame, **options: Any) -> None:
    """Draw lines through the points of a table in its order; `options` are of seaborn."""
    line = {"estimator": None, "sort": False, "legend": False, "ax": axes}
    sns.lineplot(table, x=ID, y=OOD_AVERAGE, **line, **options)


def base_point(axes: Axes, base: pd.Series, size: float, zorder: float) -> LabelledPoint:
    """Mark the base model's mean accuracies; return its label."""
    look = method("pi_0")
    axes.plot(*base, color="black", marker=look.marker, ms=size, ls="", mew=0, zorder=zorder)
    return LabelledPoint(*base, look.drawn, "black", 2.8)


def method_label(variant: str, x: float, y: float, radius: float, **changed: Any) -> LabelledPoint:
    """The label of a method's point in the method's colour: its name, or another `text`."""
    look = method(variant)
    named = {"text": look.drawn, "colour": text_colour(look.colour)} | changed
    return LabelledPoint(x, y, radius_pt=radius, **named)


def label_planes(
    figure: Figure,
    labels: Mapping[Axes, Sequence[LabelledPoint]],
    size: float,
    bold: Sequence[str] = (),
    lines: Callable[[Axes], Sequence] = lambda axes: (),
) -> None:
    """Write the labels of all planes of a figure, clear of the `lines` of each."""
    figure.draw_without_rendering()
    figure.set_layout_engine("none")  # else each panel's labels lay out all panels anew
    for axes, points in labels.items():
        place_labels(axes, points, size=size, bold=bold, lines=lines(axes))
