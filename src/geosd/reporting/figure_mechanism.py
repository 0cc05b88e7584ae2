"""The pull of one state and the drift of a whole run (the paper's Figure mechanism)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator, NullLocator

from geosd.reporting.panels import End, head, label_ends
from geosd.reporting.specs import OutputSpec
from geosd.reporting.style import PAGE_IN, method
from geosd.scores.drift_curves import mean_curve
from geosd.scores.state_table import gradients_by_overlap

SPEC = OutputSpec(
    title="gradient norm against overlap, and drift over steps",
    caption=(
        "A: norm of each divergence's gradient with respect to the student's logits, against the "
        "overlap Σ √(p q) of student and teacher, at every response position of one rollout of π₀ "
        "on each training problem; medians (lines) and quartiles (bands) in bins of overlap that "
        "hold at least ten positions, and above them how many positions lie where. B: mean "
        "Fisher-Rao distance from π₀ over the positions that a run visits at each step; mean over "
        "seeds and its standard deviation."
    ),
    reads=("states", "drift_over_steps"),
    settings=("models", "methods"),
    trained=("fwdkl", "geosd_no_prox", "geosd"),
)


@dataclass(frozen=True)
class Curve:
    """How a divergence appears: in the colour of the method that is trained by it."""

    label: str
    colour: str
    dashes: str | tuple[float, tuple[float, ...]]


CURVES = {
    "fwdkl": Curve("FwdKL", method("fwdkl").colour, "-"),
    "revkl": Curve("RevKL", method("revkl").colour, (0, (4, 1.5))),
    "hellinger": Curve("Hellinger", method("geosd").colour, "-"),
}
DASHED = {"geosd_no_prox": (0, (4, 1.5))}


def draw(
    states: pd.DataFrame,
    drift_over_steps: pd.DataFrame,
    models: Sequence[str],
    methods: Sequence[str],
) -> Figure:
    """Draw a row per model: gradient norm against overlap, and drift over steps.

    Args:
        states: The tidy table of states.
        drift_over_steps: The tidy table of drift over steps.
        models: Models.
        methods: Variants of the right panels.

    Raises:
        ValueError: A model has no states.
    """
    figure = Figure(figsize=(PAGE_IN, 2.6 * len(models)), layout="constrained")
    layout = [row for m in models for row in ([f"n {m}", f"B {m}"], [f"A {m}", f"B {m}"])]
    panels = figure.subplot_mosaic(layout, height_ratios=[1, 5] * len(models))
    ends = []
    for model in models:
        mine = states[states["model"] == model]
        if mine.empty:
            raise ValueError(
                f"{model} has no states.\nHint: let the workflow run `states` for every model of"
                " the study."
            )
        named = f", {model}" if len(models) > 1 else ""
        _counts(panels[f"n {model}"], mine)
        head(panels[f"n {model}"], "A", "pull at one state" + named)
        _norms(panels[f"A {model}"], mine)
        head(panels[f"B {model}"], "B", "drift of the run" + named)
        ends.append(
            (panels[f"B {model}"], _drift(panels[f"B {model}"], drift_over_steps, model, methods))
        )
    for axes, found in ends:
        _room(axes)
        label_ends(axes, found)
    return figure


def _room(axes: Axes) -> None:
    """Room for labels to the right of the last step, outside the axis."""
    last = axes.dataLim.x1 or 1.0
    ticks = [tick for tick in MaxNLocator(5, integer=True).tick_values(0, last) if tick <= last]
    axes.set_xlim(0, 1.33 * last)
    axes.set_xticks(ticks)
    axes.spines["bottom"].set_bounds(0, last)


def _counts(axes: Axes, states: pd.DataFrame) -> None:
    """How many positions lie at each overlap: most of them agree."""
    axes.hist(states["overlap"].clip(0, 1), bins=np.linspace(0, 1, 41), color="0.75", log=True)
    axes.set(xlim=(0, 1), ylabel="positions", xticklabels=[])
    axes.tick_params(axis="x", length=0)
    axes.yaxis.set_minor_locator(NullLocator())


def _norms(axes: Axes, states: pd.DataFrame) -> None:
    for name, look in CURVES.items():
        table = gradients_by_overlap(states, name)
        axes.fill_between(
            table["overlap"], table["low"], table["high"], color=look.colour, alpha=0.16, lw=0
        )
        axes.plot(
            table["overlap"],
            table["median"],
            color=look.colour,
            ls=look.dashes,
            marker="o",
            ms=2.2,
            label=look.label,
        )
    axes.set(xlim=(0, 1), xlabel="overlap of student and teacher, Σ √(p q)")
    axes.set_ylim(bottom=0)
    axes.set_ylabel("gradient norm at the logits")
    axes.legend(loc="best", handlelength=2.2)


def _drift(axes: Axes, drift: pd.DataFrame, model: str, methods: Sequence[str]) -> list[End]:
    ends = []
    for variant in methods:
        table = mean_curve(drift, model, variant)
        if table.empty:
            continue
        look = method(variant)
        steps = table.index.to_numpy()
        axes.fill_between(
            steps,
            table["mean"] - table["sd"],
            table["mean"] + table["sd"],
            color=look.colour,
            alpha=0.16,
            lw=0,
        )
        axes.plot(steps, table["mean"], color=look.colour, ls=DASHED.get(variant, "-"))
        bold = variant == "geosd"
        ends.append(End(steps[-1], table["mean"].iloc[-1], look.label, look.colour, bold))
    axes.set(xlabel="updates k", ylabel="$d_{\\mathrm{FR}}(\\pi_k, \\pi_0)$, radians")
    axes.set_ylim(bottom=0)
    return ends
