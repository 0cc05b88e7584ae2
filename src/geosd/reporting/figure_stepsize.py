"""Learning rate and stopping step on the ID-OOD plane (the paper's Figure stepsize)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from geosd.reporting.labels import Labelled, place
from geosd.reporting.panels import Estimate, estimate, ink
from geosd.reporting.specs import OutputSpec
from geosd.reporting.style import COLUMN_IN, PAGE_IN, method, ordered
from geosd.reporting.sweep_points import by_variant, untrained
from geosd.reporting.table_main import said_k
from geosd.scores.score_table import ID, OOD_AVERAGE

SPEC = OutputSpec(
    title="learning rates and stopping steps",
    caption=(
        "Each point is one configuration: solid lines sweep the learning rate (labels at the "
        "points), dashed lines follow one learning rate from the base model over runs of growing "
        "length (open points), which are the same run stopped early. Means over seeds; whiskers "
        "are 95 % confidence intervals (Student's t over runs). Grey lines mark the base model."
    ),
    reads=("scores",),
    settings=("models", "points"),
    swept=("learning_rate", "steps"),
)

DASHES = (0, (3, 1.5))


@dataclass(frozen=True)
class Spot:
    """One configuration on the plane, in percent.

    Attributes:
        learning_rate: Of its training.
        steps: Steps of its training.
        id: ID accuracy, over runs.
        ood: OOD average, over runs.
    """

    learning_rate: float
    steps: int
    id: Estimate
    ood: Estimate


def spots(
    scores: pd.DataFrame, model: str, points: Sequence[Mapping[str, Any]]
) -> dict[str, list[Spot]]:
    """Every configuration of each variant of a model that has scores.

    Args:
        scores: Tidy scores.
        model: The model.
        points: `run` (the name in the scores), `variant`, `learning_rate` and `steps`.
    """
    return {
        variant: [Spot(p["learning_rate"], p["steps"], *map(estimate, runs)) for p, runs in of]
        for variant, of in by_variant(scores, model, points, (ID, OOD_AVERAGE)).items()
    }


def over_rates(of: Sequence[Spot]) -> list[Spot]:
    """The solid line: the full runs of a variant by learning rate."""
    full = max(spot.steps for spot in of)
    return sorted((s for s in of if s.steps == full), key=lambda spot: spot.learning_rate)


def over_steps(of: Sequence[Spot]) -> list[list[Spot]]:
    """The dashed lines: for each learning rate that was stopped early, its runs by length."""
    lines: dict[float, list[Spot]] = {}
    for spot in sorted(of, key=lambda spot: (spot.learning_rate, spot.steps)):
        lines.setdefault(spot.learning_rate, []).append(spot)
    return [line for line in lines.values() if len(line) > 1]


def draw(
    scores: pd.DataFrame,
    models: Sequence[str],
    points: Mapping[str, Sequence[Mapping[str, Any]]],
) -> Figure:
    """Draw a panel per model: sweeps of the learning rate, and of the stopping step.

    A run of fewer steps is the same run stopped early, because every draw is seeded by its step and
    neither warm-up nor anchor depends on the number of steps.

    Args:
        scores: Tidy scores.
        models: Models, one panel each.
        points: The configurations of each model, as in `spots`.

    Returns:
        The figure, one column wide for one model, else page wide.

    Raises:
        ValueError: pi_0 was not evaluated, or no variant was trained at two learning rates.
    """
    found = {model: spots(scores, model, points[model]) for model in models}
    origins = {model: _origin(scores, model) for model in models}
    for model, of in found.items():
        if not any(len(over_rates(line)) > 1 for line in of.values()):
            raise ValueError(
                f"{model}: no variant was trained at two or more learning rates, so there is no"
                " sweep.\nHint: give the study a grid, e.g. grid: {fwdkl: [{learning_rate: [1.0e-7,"
                " 1.0e-6, 1.0e-5]}, {steps: [25, 50, 100]}], geosd: ...}."
            )
    size = (COLUMN_IN, 3.1) if len(models) == 1 else (PAGE_IN, 3.0)
    figure = Figure(figsize=size, layout="constrained")
    panels = figure.subplots(1, len(models), squeeze=False)[0]
    labelled = []
    for axes, model in zip(panels, models, strict=True):
        labelled.append(_panel(axes, found[model], origins[model]))
        axes.set_title(model)
        axes.set_xlabel(f"ID {said_k(scores)} (%)")
    panels[0].set_ylabel(f"OOD {said_k(scores)} (%)")
    _legend(figure, found)
    for axes, labels in zip(panels, labelled, strict=True):
        place(axes, labels, size=6, lines=_drawn(axes))
    return figure


def _origin(scores: pd.DataFrame, model: str) -> tuple[float, float]:
    at_id, at_ood = untrained(scores, model, (ID, OOD_AVERAGE))
    return at_id.mean(), at_ood.mean()


def _panel(
    axes: Axes, found: Mapping[str, Sequence[Spot]], origin: tuple[float, float]
) -> list[Labelled]:
    axes.axhline(origin[1], color="0.7", lw=0.6, zorder=0)
    axes.axvline(origin[0], color="0.7", lw=0.6, zorder=0)
    labels = []
    for variant, of in found.items():
        look = method(variant)
        rates = over_rates(of)
        for line in over_steps(of):
            x, y = _xy(line)
            x, y = [origin[0], *x], [origin[1], *y]
            axes.plot(x, y, color=look.colour, lw=0.9, ls=DASHES, zorder=2)
            early = [spot for spot in line if spot not in rates]
            axes.plot(
                *_xy(early),
                color=look.colour,
                marker=look.marker,
                mfc="white",
                ms=2.6,
                mew=0.7,
                ls="",
                zorder=3,
            )
            labels += [_label(s, f"step {s.steps}", look.colour, 1.5) for s in early[:1]]
        axes.plot(*_xy(rates), color=look.colour, lw=1.4, zorder=2.5)
        _whiskers(axes, of, look.colour)
        axes.plot(
            *_xy(rates),
            color=look.colour,
            marker=look.marker,
            ms=4,
            mec="white",
            mew=0.4,
            ls="",
            zorder=3,
        )
        labels += [_label(s, _short(s.learning_rate), look.colour, 2.2) for s in rates]
    axes.plot(*origin, color="black", marker=method("pi_0").marker, ms=5, ls="", mew=0, zorder=4)
    labels.append(Labelled(*origin, method("pi_0").label, "black", 2.8))
    axes.margins(0.1)
    axes.set_xlim(axes.get_xlim())
    axes.set_ylim(axes.get_ylim())
    return labels


def _drawn(axes: Axes) -> list[list[tuple[float, float]]]:
    """Corners of all lines of a panel, its first two from edge to edge."""
    (left, right), (low, high) = axes.get_xlim(), axes.get_ylim()
    across, up, *others = (list(zip(*line.get_data(), strict=True)) for line in axes.lines)
    through = [[(left, across[0][1]), (right, across[0][1])], [(up[0][0], low), (up[0][0], high)]]
    return through + others


def _xy(line: Sequence[Spot]) -> tuple[list[float], list[float]]:
    return [spot.id.mean for spot in line], [spot.ood.mean for spot in line]


def _whiskers(axes: Axes, of: Sequence[Spot], colour: str) -> None:
    x, y = _xy(of)
    axes.errorbar(
        x,
        y,
        xerr=[spot.id.half for spot in of],
        yerr=[spot.ood.half for spot in of],
        color=colour,
        ls="",
        elinewidth=0.6,
        alpha=0.35,
        zorder=1.5,
    )


def _label(spot: Spot, text: str, colour: str, radius: float) -> Labelled:
    return Labelled(spot.id.mean, spot.ood.mean, text, ink(colour), radius)


def _short(rate: float) -> str:
    """A learning rate in few letters.

    Example:
        >>> _short(3e-7), _short(2.5e-6)
        ('3e-7', '2.5e-6')
    """
    power = math.floor(math.log10(rate) + 1e-9)
    return f"{round(rate / 10**power, 3):g}e{power}"


def _legend(figure: Figure, found: Mapping[str, Mapping[str, Sequence[Spot]]]) -> None:
    variants = ordered(variant for of in found.values() for variant in of)
    handles = [
        Line2D([], [], color=method(v).colour, marker=method(v).marker, ms=4, lw=1.4)
        for v in variants
    ]
    labels = [method(v).label for v in variants]
    handles.append(Line2D([], [], color="0.3", lw=1.4))
    labels.append("learning rate")
    if any(over_steps(line) for of in found.values() for line in of.values()):
        handles.append(Line2D([], [], color="0.3", lw=0.9, ls=DASHES))
        labels.append("stopped early")
    figure.legend(
        handles,
        labels,
        loc="outside lower center",
        ncols=len(labels),
        columnspacing=1.0,
        handlelength=1.8,
        handletextpad=0.4,
        borderpad=0,
    )
