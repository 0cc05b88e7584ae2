"""What figures share: widths, a panel for each model, titles, legends, files."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from geosd.files import atomic_write
from geosd.reporting.theme import themed

COLUMN_IN = 3.35
PAGE_IN = 6.9
"""Widths of one column and of the page, in inches."""


def model_panels(
    models: Sequence[str], height: float, page_height: float | None = None, **shared: bool | str
) -> tuple[Figure, dict[str, Axes]]:
    """Make a figure with a titled panel per model: a column wide for one model, else page wide.

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
    """Draw error bars in x and in y around the mean of the runs of each point of a figure.

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


def panel_title(axes: Axes, letter: str, text: str = "") -> None:
    """Write the letter of a figure's panel in bold, and whose it is, flush left above it."""
    axes.set_title(
        rf"$\mathbf{{{letter}}}$  {text}" if text else rf"$\mathbf{{{letter}}}$", loc="left"
    )


def legend_below(figure: Figure, handles: Sequence, labels: Sequence[str], **options) -> None:
    """Put one legend of a figure in a row below all its panels."""
    compact = {"columnspacing": 1.0, "handlelength": 1.6, "handletextpad": 0.4, "borderpad": 0}
    figure.legend(
        handles, labels, loc="outside lower center", ncols=len(labels), **(compact | options)
    )


def power_of_ten(rate: float) -> str:
    r"""A learning rate as a figure shows it, as a power of ten.

    Example:
        >>> power_of_ten(1e-6), power_of_ten(3e-7)
        ('$10^{-6}$', '$3{\\cdot}10^{-7}$')
    """
    power = math.floor(math.log10(rate) + 1e-9)
    factor = f"{round(rate / 10**power, 3):g}"
    return f"$10^{{{power}}}$" if factor == "1" else rf"${factor}{{\cdot}}10^{{{power}}}$"


@themed
def save(figure: Figure, folder: Path | str, name: str) -> list[Path]:
    """Save a figure as PDF, SVG and PNG; the same figure gives the same bytes.

    Returns:
        The three paths.
    """
    # Dates and random ids are what else would differ between two drawings of one figure.
    undated = {
        "pdf": {"CreationDate": None, "ModDate": None},
        "svg": {"Date": None},
        "png": {"Software": None},
    }
    paths = []
    for extension, metadata in undated.items():
        path = Path(folder) / f"{name}.{extension}"
        with atomic_write(path) as temporary:
            figure.savefig(temporary, format=extension, metadata=metadata)
        paths.append(path)
    return paths
