"""What figures share: intervals over runs, panels for models, letters, labels at ends of lines."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from scipy.optimize import isotonic_regression

from geosd.reporting.style import COLUMN_IN, PAGE_IN, method, text_colour
from geosd.scores.statistics import Group, contrast


def student_interval(values: Iterable[float]) -> tuple[float, float]:
    """95 % confidence interval of a mean over runs (Student's t), an `errorbar` of seaborn.

    Returns:
        Both ends; the mean twice where no spread is known.

    Raises:
        ValueError: There is no run, or a value is not finite.
    """
    runs = Group.of(values)
    test = contrast([runs])
    return (runs.mean, runs.mean) if math.isnan(test.low) else (test.low, test.high)


def model_panels(
    models: Sequence[str], height: float, page_height: float | None = None, **shared: bool | str
) -> tuple[Figure, dict[str, Axes]]:
    """A figure with one titled panel per model: a column wide for one model, else page wide.

    Height is in inches, `page_height` that of a page wide figure where it is another one; `shared`
    are `sharex` and `sharey` of matplotlib.
    """
    alone = len(models) == 1
    size = (COLUMN_IN, height) if alone else (PAGE_IN, page_height or height)
    figure = Figure(figsize=size, layout="constrained")
    panels = figure.subplots(1, len(models), squeeze=False, **shared)[0]
    for axes, model in zip(panels, models, strict=True):
        axes.set_title(model)
    return figure, dict(zip(models, panels, strict=True))


def plane_whiskers(
    axes: Axes, runs: pd.DataFrame, x: str, y: str, by: str, errorbar: object, **options: object
) -> None:
    """Whiskers in both directions around the mean of the runs of each point of a plane.

    `x` and `y` are columns of the runs, `by` the one that names the point; `errorbar` is seaborn's,
    e.g. "sd", and `options` are further keywords of `seaborn.lineplot`.
    """
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
            linestyle="",
            legend=False,
            ax=axes,
            **options,
        )


def states_of_model(states: pd.DataFrame, model: str) -> pd.DataFrame:
    """A model's rows of the table of states.

    Raises:
        ValueError: There is none.
    """
    rows = states[states["model"] == model]
    if rows.empty:
        raise ValueError(
            f"{model} has no states.\nHint: let the workflow run `states` for every model of"
            " the study."
        )
    return rows


def panel_title(axes: Axes, letter: str, text: str = "") -> None:
    """A panel's letter in bold and its title, flush left above it."""
    axes.set_title(
        rf"$\mathbf{{{letter}}}$  {text}" if text else rf"$\mathbf{{{letter}}}$", loc="left"
    )


def legend_below(figure: Figure, handles: Sequence, labels: Sequence[str], **options) -> None:
    """One legend in a row below all panels."""
    compact = {"columnspacing": 1.0, "handlelength": 1.6, "handletextpad": 0.4, "borderpad": 0}
    figure.legend(
        handles, labels, loc="outside lower center", ncols=len(labels), **(compact | options)
    )


def label_line_ends(axes: Axes, runs: pd.DataFrame, x: str, y: str) -> None:
    """Write each method's name to the right of its mean line's end, apart where names would touch.

    `x` and `y` are columns of `runs`, which has a column `variant` too. Axis limits and the axes'
    height must be final; the caller leaves room to the right.
    """
    size, gap = 7.0, 3.0  # points
    figure = axes.figure
    figure.draw_without_rendering()
    pixel = figure.dpi / 72
    means = runs.groupby(["variant", x], sort=False)[y].mean().sort_index(level=1)
    ends = means.groupby("variant", sort=True).tail(1)
    heights = [axes.transData.transform((at, value))[1] for (_, at), value in ends.items()]
    spaced = push_apart(heights, 1.25 * size * pixel)
    for ((name, at), value), was, height in zip(ends.items(), heights, spaced, strict=True):
        text = axes.annotate(
            method(name).label,
            (at, value),
            xytext=(gap, (height - was) / pixel),
            textcoords="offset points",
            va="center",
            ha="left",
            fontsize=size,
            color=text_colour(method(name).colour),
            weight="bold" if name == "geosd" else "normal",
            annotation_clip=False,
        )
        text.set_in_layout(False)


def push_apart(values: Sequence[float], least: float) -> Sequence[float]:
    """Move values as little as possible, in their order, so that neighbours are `least` apart."""
    order = np.argsort(values, kind="stable")
    offsets = least * np.arange(len(order))
    moved = np.empty(len(order))
    moved[order] = isotonic_regression(np.asarray(values)[order] - offsets).x + offsets
    return moved
