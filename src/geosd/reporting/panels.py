"""What figures share: intervals over runs, panels for models, letters, labels at ends of lines."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from geosd.reporting.style import COLUMN_IN, PAGE_IN, text_colour
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

    Args:
        models: Titles of the panels.
        height: Of the figure in inches.
        page_height: Of a page wide figure, where it is another one.
        shared: `sharex` and `sharey` of matplotlib.
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

    Args:
        axes: Where to draw.
        runs: One row a run.
        x: Its column along the horizontal axis.
        y: Its column along the vertical axis.
        by: Column that names the point a run belongs to.
        errorbar: Seaborn's, e.g. "sd".
        options: Further keywords of `seaborn.lineplot`; those of the whiskers as `err_kws`.
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


@dataclass(frozen=True)
class LineEnd:
    """The right end of a line, to be labelled.

    Attributes:
        x: In data coordinates.
        y: In data coordinates.
        text: The label.
        colour: Of the line.
        bold: Whether the label is bold.
    """

    x: float
    y: float
    text: str
    colour: str
    bold: bool = False


def label_line_ends(
    axes: Axes, ends: Sequence[LineEnd], size: float = 7.0, gap_pt: float = 3.0
) -> None:
    """Write labels to the right of the lines' ends, pushed apart where they would touch.

    Axis limits and the axes' height must be final; the caller leaves room to the right.

    Args:
        axes: Where to write.
        ends: What to label.
        size: Font size in points.
        gap_pt: Distance from the line's end, in points.
    """
    figure = axes.figure
    figure.draw_without_rendering()
    pixel = figure.dpi / 72
    heights = [axes.transData.transform((end.x, end.y))[1] for end in ends]
    spaced = push_apart(heights, 1.25 * size * pixel)
    for end, was, height in zip(ends, heights, spaced, strict=True):
        text = axes.annotate(
            end.text,
            (end.x, end.y),
            xytext=(gap_pt, (height - was) / pixel),
            textcoords="offset points",
            va="center",
            ha="left",
            fontsize=size,
            color=text_colour(end.colour),
            weight="bold" if end.bold else "normal",
            annotation_clip=False,
        )
        text.set_in_layout(False)


def push_apart(values: Sequence[float], least: float) -> list[float]:
    """Move values as little as possible so that neighbours are at least `least` apart.

    The order is kept; runs of values that touch are centred on the mean of what they hold.
    """
    order = sorted(range(len(values)), key=lambda i: (values[i], i))
    groups: list[list[int]] = []
    centres: list[float] = []
    for i in order:
        groups.append([i])
        centres.append(values[i])
        while len(groups) > 1:
            reach = least * (len(groups[-2]) + len(groups[-1])) / 2
            if centres[-1] - centres[-2] >= reach - 1e-9:
                break
            joined = groups.pop(-2) + groups.pop()
            groups.append(joined)
            del centres[-2:]
            centres.append(sum(values[j] for j in joined) / len(joined))
    moved = [0.0] * len(values)
    for members, centre in zip(groups, centres, strict=True):
        for at, i in enumerate(members):
            moved[i] = centre + least * (at - (len(members) - 1) / 2)
    return moved
