"""Placement of labels at points and at ends of lines, so that they hide nothing."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.transforms import Bbox
from scipy.optimize import isotonic_regression

from geosd.reporting.method_style import method, text_colour

DIRECTIONS = 16
REACHES_PT = (3.0, 8.0, 14.0, 22.0, 32.0)
FRAME_PT = 2.0
LEADER_PT = 14.0  # From this reach on a label has a line to its point.


@dataclass(frozen=True)
class LabelledPoint:
    """A label of a figure and the point that it names, in data coordinates.

    An empty text marks what labels keep clear of; `spread` are half lengths of whiskers in x and y.
    """

    x: float
    y: float
    text: str
    colour: str | tuple[float, float, float]
    radius_pt: float
    spread: tuple[float, float] = (0.0, 0.0)


def place_labels(
    axes: Axes,
    points: Sequence[LabelledPoint],
    size: float,
    bold: Sequence[str] = (),
    lines: Sequence[Sequence[tuple[float, float]]] = (),
) -> None:
    """Write each point's label where it covers least; a far label gets a thin line to its point.

    Greedy and without random numbers: the most crowded points choose first, each takes the nearest
    free place of `DIRECTIONS` x `REACHES_PT`, so the same points give the same picture. Axis limits
    must be final. `bold` are texts; `lines` are corners of drawn lines in data coordinates, which
    labels should not cross either.
    """
    figure = axes.figure
    scale = figure.dpi / 72
    figure.draw_without_rendering()  # Constrained layout moves axes; pixels count only afterwards.
    renderer = FigureCanvasAgg(figure).get_renderer()
    # A label at the very frame touches its line.
    frame = axes.get_window_extent(renderer).padded(-FRAME_PT * scale)
    at = [tuple(axes.transData.transform((p.x, p.y))) for p in points]
    taken = _lines(axes, frame, scale)
    for corners in lines:
        taken += _along([tuple(axes.transData.transform(corner)) for corner in corners], scale)
    taken += [box for p, xy in zip(points, at, strict=True) for box in _marks(axes, p, xy, scale)]
    written: list[Bbox] = []

    def crowd(i: int) -> float:
        return math.fsum(math.exp(-math.dist(at[i], other) / (40 * scale)) for other in at)

    for i in sorted(range(len(points)), key=lambda i: (-crowd(i), i)):
        point, (px, py) = points[i], at[i]
        if not point.text:
            continue
        weight = "bold" if point.text in bold else "normal"
        text = axes.text(
            0, 0, point.text, fontsize=size, color=point.colour, weight=weight, zorder=5
        )
        text.set_in_layout(False)
        extent = text.get_window_extent(renderer)
        width, height = extent.width, extent.height * 0.8
        best: tuple[float, Bbox, float] | None = None
        for reach in REACHES_PT:
            for turn in range(DIRECTIONS):
                angle = 2 * math.pi * turn / DIRECTIONS
                away = (point.radius_pt + reach) * scale
                cx = px + math.cos(angle) * (away + width / 2)
                cy = py + math.sin(angle) * (away + height / 2)
                box = Bbox.from_bounds(cx - width / 2, cy - height / 2, width, height)
                cost = math.fsum(_overlap(box, other) for other in taken) + 4 * _outside(box, frame)
                cost += 0.015 * height * reach * scale
                if reach >= LEADER_PT:  # A leader through another's label reads as that one's.
                    leader = _along([_nearest(box, px, py), (px, py)], scale)
                    cost += math.fsum(_overlap(dot, other) for dot in leader for other in written)
                if best is None or cost < best[0]:
                    best = (cost, box, reach)
        _, box, reach = best
        text.set_position(axes.transData.inverted().transform((box.x0, box.y0)))
        text.set_verticalalignment("baseline")
        written.append(box)
        taken.append(box)
        if reach >= LEADER_PT:
            near = _nearest(box, px, py)
            taken += _along([near, (px, py)], scale)
            start = axes.transData.inverted().transform(near)
            axes.plot(
                [start[0], point.x], [start[1], point.y], color=point.colour, lw=0.4, zorder=1.5
            )


def label_line_ends(axes: Axes, runs: pd.DataFrame, x: str, y: str) -> None:
    """Write each `variant`'s name at its mean line's end, apart; limits must be final."""
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
            method(name).drawn,
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
    """Move heights of labels as little as possible, so that neighbours are `least` apart."""
    order = np.argsort(values, kind="stable")
    offsets = least * np.arange(len(order))
    moved = np.empty(len(order))
    moved[order] = isotonic_regression(np.asarray(values)[order] - offsets).x + offsets
    return moved


def _marks(axes: Axes, point: LabelledPoint, at: tuple[float, float], scale: float) -> list[Bbox]:
    """Boxes in pixels of a point's marker and of its whiskers."""
    x, y = at
    r = point.radius_pt * scale
    corner = axes.transData.transform((point.x + point.spread[0], point.y + point.spread[1]))
    w, h = abs(corner[0] - x), abs(corner[1] - y)
    thin = 1.5 * scale
    w, h = w + thin, h + thin  # a label that ends where a whisker does touches it
    return [
        Bbox.from_extents(x - r, y - r, x + r, y + r),
        Bbox.from_extents(x - w, y - thin, x + w, y + thin),
        Bbox.from_extents(x - thin, y - h, x + thin, y + h),
    ]


def _lines(axes: Axes, frame: Bbox, scale: float) -> list[Bbox]:
    """Boxes in pixels of the two zero lines."""
    x, y = axes.transData.transform((0, 0))
    return [
        Bbox.from_extents(frame.x0, y - scale, frame.x1, y + scale),
        Bbox.from_extents(x - scale, frame.y0, x + scale, frame.y1),
    ]


def _nearest(box: Bbox, x: float, y: float) -> tuple[float, float]:
    """The point of a box nearest to another point, in pixels."""
    return min(max(x, box.x0), box.x1), min(max(y, box.y0), box.y1)


def _along(at: Sequence[tuple[float, float]], scale: float) -> list[Bbox]:
    """Small boxes along a line in pixels, close enough that no label fits between two."""
    side, step = 1.5 * scale, 4 * scale
    boxes = []
    for (x0, y0), (x1, y1) in pairwise(at):
        count = max(1, math.ceil(math.hypot(x1 - x0, y1 - y0) / step))
        for i in range(count + 1):
            x, y = x0 + (x1 - x0) * i / count, y0 + (y1 - y0) * i / count
            boxes.append(Bbox.from_extents(x - side, y - side, x + side, y + side))
    return boxes


def _overlap(a: Bbox, b: Bbox) -> float:
    width = min(a.x1, b.x1) - max(a.x0, b.x0)
    height = min(a.y1, b.y1) - max(a.y0, b.y0)
    return width * height if width > 0 and height > 0 else 0.0


def _outside(box: Bbox, frame: Bbox) -> float:
    """Area of a box beyond the axes."""
    return box.width * box.height - _overlap(box, frame)
