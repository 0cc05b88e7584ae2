"""What figures of several panels share: letters, labels at the ends of lines, means with bands."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from scipy import stats

from geosd.scores.statistics import Group

BAND = 0.95
"""Confidence of every band and whisker that is said to be one."""


@dataclass(frozen=True)
class Estimate:
    """A mean over runs.

    Attributes:
        mean: Over the runs.
        half: Half the width of its 95 % confidence interval (Student's t); 0 for a single run,
            of which no spread is known.
        n: Runs.
    """

    mean: float
    half: float
    n: int

    @property
    def low(self) -> float:
        """Lower end of the interval."""
        return self.mean - self.half

    @property
    def high(self) -> float:
        """Upper end of the interval."""
        return self.mean + self.half


def estimate(values: Iterable[float]) -> Estimate:
    """The mean of one value per run, with its 95 % confidence interval.

    Raises:
        ValueError: There is no run, or a value is not finite.
    """
    group = Group.of(values)
    if group.n < 2:
        return Estimate(group.mean, 0.0, group.n)
    half = float(stats.t.ppf((1 + BAND) / 2, group.n - 1)) * group.sd / math.sqrt(group.n)
    return Estimate(group.mean, half, group.n)


def head(axes: Axes, letter: str, text: str = "") -> None:
    """A panel's letter in bold and its title, flush left above it."""
    axes.set_title(
        rf"$\mathbf{{{letter}}}$  {text}" if text else rf"$\mathbf{{{letter}}}$", loc="left"
    )


def ink(colour: str) -> tuple[float, float, float]:
    """A darker shade of a colour: light ones do not carry small letters."""
    red, green, blue = to_rgb(colour)
    return (0.62 * red, 0.62 * green, 0.62 * blue)


@dataclass(frozen=True)
class End:
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


def label_ends(axes: Axes, ends: Sequence[End], size: float = 7.0, gap_pt: float = 3.0) -> None:
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
    spaced = spread(heights, 1.25 * size * pixel)
    for end, was, height in zip(ends, heights, spaced, strict=True):
        text = axes.annotate(
            end.text,
            (end.x, end.y),
            xytext=(gap_pt, (height - was) / pixel),
            textcoords="offset points",
            va="center",
            ha="left",
            fontsize=size,
            color=ink(end.colour),
            weight="bold" if end.bold else "normal",
            annotation_clip=False,
        )
        text.set_in_layout(False)


def spread(values: Sequence[float], least: float) -> list[float]:
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
