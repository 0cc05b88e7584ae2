"""ID gain against OOD gain of every method (the paper's Figure frontier)."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from geosd.reporting.labels import Labelled, place
from geosd.reporting.panels import ink
from geosd.reporting.specs import OutputSpec
from geosd.reporting.style import COLUMN_IN, PAGE_IN, method, ordered
from geosd.reporting.sweep_points import untrained
from geosd.scores.score_table import ID, OOD_AVERAGE, values
from geosd.scores.statistics import Group

SPEC = OutputSpec(
    title="accuracy in against out of distribution",
    caption=(
        "Each method's gain over the base model out of distribution against its gain in "
        "distribution, mean over seeds; whiskers are standard deviations, the size of a mark is "
        "pass@k out of distribution. The lines through the base model part gains from losses. "
        "Where far points squeeze the others together, a second row shows the dashed frame alone."
    ),
    reads=("scores",),
    settings=("models", "methods"),
)

AREAS_PT2 = (12.0, 62.0)
"""Marker areas of the smallest and the largest pass@k of the figure."""

SQUEEZED = 0.25
"""Points nearer to the origin than this share of the farthest one's reach stand in a crowd."""
MANY = 4
"""A crowd of so many, beside the origin, has a panel of its own."""

Area = Callable[[float], float]


@dataclass(frozen=True)
class Point:
    """One method on the plane, all in percentage points.

    Attributes:
        variant: The method.
        id_gain: Mean over runs of the ID accuracy, minus the base model's mean.
        ood_gain: The same of the OOD average.
        id_sd: Standard deviation over runs; 0 for a single run.
        ood_sd: The same of the OOD average.
        passed: Mean OOD pass@k, in percent; NaN where not scored.
    """

    variant: str
    id_gain: float
    ood_gain: float
    id_sd: float
    ood_sd: float
    passed: float

    @property
    def reach(self) -> float:
        """How far from the base model, along the axis on which it is farther."""
        return max(abs(self.id_gain), abs(self.ood_gain))


def points(scores: pd.DataFrame, model: str, methods: Sequence[str]) -> list[Point]:
    """Where each method of a model stands.

    Args:
        scores: Tidy scores.
        model: The model.
        methods: Variants; those without scores are left out, and pi_0 is the origin, not a point.

    Raises:
        ValueError: The base model was not evaluated.
    """
    benchmarks = (ID, OOD_AVERAGE)
    base = dict(zip(benchmarks, untrained(scores, model, benchmarks), strict=True))
    found = []
    for variant in ordered(methods):
        mine = {name: values(scores, model, variant, name, "avg@k") for name in base}
        if variant == "pi_0" or any(runs.empty for runs in mine.values()):
            continue
        groups = {name: Group.of(runs) for name, runs in mine.items()}
        passed = values(scores, model, variant, OOD_AVERAGE, "pass@k")
        found.append(
            Point(
                variant,
                groups[ID].mean - base[ID].mean(),
                groups[OOD_AVERAGE].mean - base[OOD_AVERAGE].mean(),
                groups[ID].sd if groups[ID].n > 1 else 0.0,
                groups[OOD_AVERAGE].sd if groups[OOD_AVERAGE].n > 1 else 0.0,
                passed.mean() if len(passed) else math.nan,
            )
        )
    return found


def squeezed(found: Sequence[Point]) -> list[Point]:
    """The points that a panel of all would draw upon each other at the origin; none if few."""
    farthest = max((point.reach for point in found), default=0.0)
    near = [point for point in found if point.reach <= SQUEEZED * farthest]
    return near if len(near) >= MANY else []


def draw(scores: pd.DataFrame, models: Sequence[str], methods: Sequence[str]) -> Figure:
    """Draw a panel per model: gains in percentage points, dot area by OOD pass@k.

    Args:
        scores: Tidy scores.
        models: Models, one panel each, at most three in a row; where points are squeezed together,
            a second one below it.
        methods: Variants.

    Returns:
        The figure, one column wide for one model, else page wide.
    """
    panels = {model: points(scores, model, methods) for model in models}
    near = {model: squeezed(found) for model, found in panels.items()}
    deep = 2 if any(near.values()) else 1
    columns = min(len(models), 3)
    lines = deep * math.ceil(len(models) / columns)
    size = (COLUMN_IN, 2.75 * deep) if len(models) == 1 else (PAGE_IN, 2.5 * lines)
    figure = Figure(figsize=size, layout="constrained")
    grid = figure.subplots(lines, columns, squeeze=False)
    passed = [p.passed for found in panels.values() for p in found if not math.isnan(p.passed)]
    area = _area(passed)
    drawn = []
    for number, (model, found) in enumerate(panels.items()):
        column = grid[number // columns * deep :, number % columns]
        column[0].set_title(model)
        labelled = _panel(column[0], found, area)
        if near[model]:
            below = _panel(column[1], near[model], area, whiskers=False)
            drawn.append((column[1], below))
            _frame(column[0], column[1])
            names = {one.text for one in below}
            labelled = [replace(one, text="") if one.text in names else one for one in labelled]
        drawn.append((column[0], labelled))
    for axes in {*grid.flat} - {axes for axes, _ in drawn}:
        axes.remove()
    for axes, _ in drawn:
        axes.set_xlabel("ID gain over π₀ (points)")
        if axes in grid[:, 0]:
            axes.set_ylabel("OOD gain over π₀ (points)")
    _legend(figure, passed, area, _largest_k(scores))
    for axes, labelled in drawn:
        place(axes, labelled, size=7, bold=[method("geosd").label])
    return figure


def _frame(whole: Axes, part: Axes) -> None:
    """Mark in one panel what another one shows."""
    (left, right), (low, high) = part.get_xlim(), part.get_ylim()
    corner, width, height = (left, low), right - left, high - low
    whole.add_patch(Rectangle(corner, width, height, fill=False, ls="--", lw=0.6, ec="0.55"))


def _panel(axes: Axes, found: Sequence[Point], area: Area, whiskers: bool = True) -> list[Labelled]:
    """Draw points, with room for their whiskers or cutting these off; what is to be labelled."""
    axes.axhline(0, color="0.55", lw=0.6, zorder=0)
    axes.axvline(0, color="0.55", lw=0.6, zorder=0)
    labelled = []
    for point in found:
        look = method(point.variant)
        size = area(point.passed)
        axes.errorbar(
            point.id_gain,
            point.ood_gain,
            xerr=point.id_sd or None,
            yerr=point.ood_sd or None,
            color=look.colour,
            elinewidth=0.7,
            alpha=0.6,
            zorder=2,
        )
        axes.scatter(
            point.id_gain,
            point.ood_gain,
            s=size,
            color=look.colour,
            marker=look.marker,
            edgecolor="white",
            linewidth=0.4,
            zorder=3,
        )
        radius = math.sqrt(size / math.pi)
        spread = (point.id_sd, point.ood_sd)
        labelled.append(
            Labelled(point.id_gain, point.ood_gain, look.label, ink(look.colour), radius, spread)
        )
    axes.scatter(0, 0, s=30, color="black", marker=method("pi_0").marker, lw=0, zorder=3)
    labelled.append(Labelled(0, 0, method("pi_0").label, "black", 3.0))
    _limits(axes, labelled, whiskers)
    return labelled


def _limits(axes: Axes, labelled: Sequence[Labelled], whiskers: bool) -> None:
    """Room for labels, and for whiskers if asked, around every point and the origin."""
    for at, (set_limits, value) in enumerate(
        ((axes.set_xlim, lambda p: p.x), (axes.set_ylim, lambda p: p.y))
    ):
        low = min(value(p) - p.spread[at] * whiskers for p in labelled)
        high = max(value(p) + p.spread[at] * whiskers for p in labelled)
        room = 0.14 * max(high - low, 1.0)
        set_limits(low - room, high + room)


def _scale(passed: Sequence[float]) -> tuple[float, float]:
    """Ends of the size scale in percent; at least ten points apart, lest noise look like much."""
    low, high = (min(passed), max(passed)) if passed else (0.0, 0.0)
    span = max(high - low, 10.0)
    start = min(max((low + high - span) / 2, 0.0), 100.0 - span)
    return start, start + span


def _area(passed: Sequence[float]) -> Area:
    """Map pass@k to marker area; unknown values are drawn in the middle."""
    (small, large), (low, high) = AREAS_PT2, _scale(passed)

    def area(value: float) -> float:
        share = 0.5 if math.isnan(value) else (value - low) / (high - low)
        return small + (large - small) * share

    return area


def _legend(figure: Figure, passed: Sequence[float], area: Area, k: int | None) -> None:
    if not passed or k is None:
        return
    low, high = _scale(passed)
    shown = (low, (low + high) / 2, high)
    handles = [figure.axes[0].scatter([], [], s=area(v), color="0.5", lw=0) for v in shown]
    figure.legend(
        handles,
        [f"{v:.0f}%" for v in shown],
        title=f"OOD pass@{k}",
        loc="outside lower center",
        ncols=len(shown),
        title_fontsize=7,
        handletextpad=0.2,
        columnspacing=1.2,
        borderpad=0,
    )


def _largest_k(scores: pd.DataFrame) -> int | None:
    ks = scores.loc[scores["metric"] == "pass@k", "k"]
    return None if ks.empty else int(ks.max())
