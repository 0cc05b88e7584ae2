"""OOD accuracy against how much of the solution the teacher sees (the paper's Figure privilege)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from geosd.reporting.panels import End, label_ends
from geosd.reporting.specs import OutputSpec
from geosd.reporting.style import COLUMN_IN, PAGE_IN, method
from geosd.reporting.sweep_points import by_variant, untrained
from geosd.scores.score_table import OOD_AVERAGE
from geosd.scores.statistics import Group, contrast

SPEC = OutputSpec(
    title="accuracy against what the teacher sees",
    caption=(
        "Change of the mean OOD accuracy from the base model against the share of the reference "
        "solution that the teacher sees during training, mean over seeds with the 95 % confidence "
        "interval of the difference, taken within each seed."
    ),
    reads=("scores",),
    settings=("models", "points"),
    swept=("privilege",),
)


@dataclass(frozen=True)
class Change:
    """What a method trained at one privilege gains out of distribution, in percentage points.

    Attributes:
        privilege: Share of the solution revealed to the teacher.
        mean: Mean OOD accuracy over runs, minus that of the base model.
        low: Lower end of the 95 % interval of the difference; the mean where there is one run.
        high: Its upper end.
    """

    privilege: float
    mean: float
    low: float
    high: float


def changes(
    scores: pd.DataFrame, model: str, points: Sequence[Mapping[str, Any]]
) -> dict[str, list[Change]]:
    """The sweep of each variant of a model.

    Args:
        scores: Tidy scores.
        model: The model.
        points: `run` (the name in the scores), `variant` and `privilege` of each run of the sweep.

    Returns:
        Variant -> its changes by privilege; runs without scores are left out.

    Raises:
        ValueError: The base model was not evaluated, or no variant has two points.
    """
    (base,) = untrained(scores, model, [OOD_AVERAGE])
    ascending = sorted(points, key=lambda point: point["privilege"])
    found = by_variant(scores, model, ascending, [OOD_AVERAGE])
    swept = {
        variant: [_change(point["privilege"], runs - base) for point, (runs,) in of]
        for variant, of in found.items()
        if len(of) > 1
    }
    if not swept:
        raise ValueError(
            f"{model}: no variant was trained at two or more privileges, so there is no sweep.\n"
            "Hint: give the study a grid, e.g. grid: {geosd: {privilege: [0.25, 0.5, 0.75, 1.0]}}."
        )
    return swept


def _change(privilege: float, gains: pd.Series) -> Change:
    test = contrast([Group.of(gains.dropna())])
    if pd.isna(test.low):
        return Change(privilege, test.difference, test.difference, test.difference)
    return Change(privilege, test.difference, test.low, test.high)


def draw(
    scores: pd.DataFrame,
    models: Sequence[str],
    points: Mapping[str, Sequence[Mapping[str, Any]]],
) -> Figure:
    """Draw a panel per model: OOD change against privilege, with 95 % intervals.

    Args:
        scores: Tidy scores.
        models: Models, one panel each.
        points: The runs of the sweep of each model, as in `changes`.

    Returns:
        The figure, one column wide for one model, else page wide.
    """
    sweeps = {model: changes(scores, model, points[model]) for model in models}
    size = (COLUMN_IN, 2.4) if len(models) == 1 else (PAGE_IN, 2.3)
    figure = Figure(figsize=size, layout="constrained")
    panels = figure.subplots(1, len(models), squeeze=False, sharey=True)[0]
    for axes, (model, sweep) in zip(panels, sweeps.items(), strict=True):
        _panel(axes, sweep, room=0.22 if len(models) == 1 else 0.3)
        axes.set_title(model)
    panels[0].set_ylabel("OOD change from π₀ (points)")
    for axes, sweep in zip(panels, sweeps.values(), strict=True):
        label_ends(axes, [_end(variant, line) for variant, line in sweep.items()])
    return figure


def _panel(axes: Axes, sweep: Mapping[str, Sequence[Change]], room: float) -> None:
    axes.axhline(0, color="0.55", lw=0.6, zorder=0)
    for variant, line in sweep.items():
        look = method(variant)
        x = [100 * change.privilege for change in line]
        low, high = [change.low for change in line], [change.high for change in line]
        axes.fill_between(x, low, high, color=look.colour, alpha=0.15, lw=0, zorder=1)
        axes.plot(
            x,
            [change.mean for change in line],
            color=look.colour,
            marker=look.marker,
            ms=4,
            mec="white",
            mew=0.4,
            zorder=2,
        )
    shares = sorted({100 * change.privilege for line in sweep.values() for change in line})
    axes.set_xticks(shares, [f"{share:g}" for share in shares])
    # The room is for the labels at the lines' ends.
    axes.set_xlim(shares[0] - 4, shares[-1] + room * (shares[-1] - shares[0]))
    axes.set_xlabel("solution revealed to the teacher (%)")


def _end(variant: str, line: Sequence[Change]) -> End:
    look = method(variant)
    return End(100 * line[-1].privilege, line[-1].mean, look.label, look.colour, variant == "geosd")
