"""From local concentration to false consensus (the paper's Figure consensus)."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedLocator, NullLocator, PercentFormatter

from geosd.reporting.panels import Estimate, estimate, head, ink
from geosd.reporting.specs import OutputSpec
from geosd.reporting.style import ABLATION, OTHER, PAGE_IN, method, ordered

SPEC = OutputSpec(
    title="what the samples agree on",
    caption=(
        "What the samples of each OOD problem agree on; means over seeds with 95 % confidence "
        "intervals (Student's t over runs). A: pass@k against the number of samples k. B: share "
        "of problems on which at least three quarters of the samples give one and the same wrong "
        "answer. C: how often the majority answer is right against the share C(x) of samples that "
        "give it, problems binned by C(x); on the diagonal, agreement says how reliable the "
        "answer is. Bins of fewer than ten problems are not drawn, problems without any answer "
        "have no majority."
    ),
    reads=("consensus",),
    settings=("models", "methods"),
)

STRENGTHS = (0.0, 0.25, 0.375, 0.5, 0.625, 0.75, 0.875, 1.0)
"""Edges of the bins of C(x), each closed below; the last holds 1, and one edge is tau."""
FEWEST = 10
"""Problems, all seeds together, below which a bin is not drawn."""
LOUD = ("pi_0", "fwdkl", "geosd")
"""Methods that the paper's text compares: drawn strong where many lines meet."""


def curve(table: pd.DataFrame, model: str, variant: str) -> list[tuple[float, Estimate]]:
    """OOD pass@k of a variant: k, and the mean over its runs in percent."""
    mine = _of(table, model, variant, "pass@k")
    return [(float(k), estimate(rows["value"])) for k, rows in mine.groupby("x")]


def false_rate(table: pd.DataFrame, model: str, variant: str) -> Estimate | None:
    """False-consensus rate of a variant in percent; None where it has no runs."""
    mine = _of(table, model, variant, "false_consensus")
    return None if mine.empty else estimate(mine["value"])


def reliability(table: pd.DataFrame, model: str, variant: str) -> list[tuple[float, Estimate]]:
    """Majority-answer accuracy of a variant against consensus strength.

    A run's accuracy in a bin is over its problems there; the estimate is over the runs that have
    any. Problems of which no sample gave an answer have no majority answer and are left out.

    Returns:
        For each bin of `STRENGTHS` with at least `FEWEST` problems: their mean C(x), and the
        accuracy in percent.
    """
    mine = _of(table, model, variant, "majority_accuracy")
    mine = mine[mine["x"] > 0]
    # The slack keeps 3 of 4 at or above .75, whatever the float division made of it.
    bins = np.searchsorted(STRENGTHS[:-1], mine["x"].to_numpy(dtype=float) + 1e-12, side="right")
    found = []
    for _, rows in mine.groupby(bins):
        if rows["problems"].sum() < FEWEST:
            continue
        runs = [np.average(r["value"], weights=r["problems"]) for _, r in rows.groupby("seed")]
        found.append((float(np.average(rows["x"], weights=rows["problems"])), estimate(runs)))
    return found


def _of(table: pd.DataFrame, model: str, variant: str, quantity: str) -> pd.DataFrame:
    return table[
        (table["model"] == model) & (table["variant"] == variant) & (table["quantity"] == quantity)
    ]


def draw(consensus: pd.DataFrame, models: Sequence[str], methods: Sequence[str]) -> Figure:
    """Draw a row of three panels per model, means over seeds with 95 % intervals.

    Args:
        consensus: The tidy agreement table, `geosd.scores.consensus_table`.
        models: Models, one row each.
        methods: Variants; ablations are left out, the paper does not show them here.

    Raises:
        ValueError: A model has no OOD samples of any method.
    """
    shown = [v for v in ordered(methods) if method(v).kind not in (ABLATION, OTHER)]
    present = [v for v in shown if any(curve(consensus, model, v) for model in models)]
    for model in models:
        if not any(curve(consensus, model, variant) for variant in present):
            raise ValueError(
                f"{model}: no OOD samples of any of {', '.join(shown) or 'no methods'}, so there is"
                " no consensus to draw.\nHint: the study must evaluate methods of the paper on OOD"
                " benchmarks (data.purpose: study), and `analyse` must have run since."
            )
    figure = Figure(figsize=(PAGE_IN, 0.35 + 2.2 * len(models)), layout="constrained")
    grid = figure.subplots(len(models), 3, squeeze=False, width_ratios=(1.1, 0.8, 1.1))
    for row, (model, (passed, false, reliable)) in enumerate(zip(models, grid, strict=True)):
        name = f" ({model})" if len(models) > 1 else ""
        _passed(passed, consensus, model, present)
        _false(false, consensus, model, present)
        _reliable(reliable, consensus, model, present)
        if row == 0 or name:
            head(passed, "A", f"coverage{name}")
            head(false, "B", "false consensus")
            head(reliable, "C", "is agreement right?")
    _legend(figure, present)
    return figure


def _line(axes: Axes, variant: str, points: Sequence[tuple[float, Estimate]]) -> None:
    look, loud = method(variant), variant in LOUD
    x = [at for at, _ in points]
    axes.fill_between(
        x,
        [max(value.low, 0.0) for _, value in points],  # A share stays one, whatever its band.
        [min(value.high, 100.0) for _, value in points],
        color=look.colour,
        alpha=0.18 if loud else 0.08,
        lw=0,
        zorder=1,
    )
    axes.plot(x, [value.mean for _, value in points], zorder=3 if loud else 2, **_style(variant))


def _style(variant: str) -> dict[str, object]:
    look, loud = method(variant), variant in LOUD
    return {
        "color": look.colour,
        "marker": look.marker,
        "ms": 3.6 if loud else 2.8,
        "mec": "white",
        "mew": 0.3,
        "lw": 1.5 if loud else 0.9,
        "ls": (0, (4, 1.5)) if variant == "pi_0" else "-",
    }


def _passed(axes: Axes, table: pd.DataFrame, model: str, variants: Sequence[str]) -> None:
    largest = 1
    for variant in variants:
        points = curve(table, model, variant)
        largest = max([largest, *(int(k) for k, _ in points)])
        # All k make the line and the band; markers at every k would hide it.
        _line(axes, variant, points)
        powers = [at for at, (k, _) in enumerate(points) if math.log2(k).is_integer()]
        axes.lines[-1].set_markevery(powers)
    ticks = [2**i for i in range(int(math.log2(largest)) + 1)]
    axes.set_xscale("log", base=2)
    axes.xaxis.set_major_locator(FixedLocator(ticks))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set_xticklabels([str(k) for k in ticks])
    axes.set_xlabel("samples k")
    axes.set_ylabel("OOD pass@k (%)")


def _false(axes: Axes, table: pd.DataFrame, model: str, variants: Sequence[str]) -> None:
    for row, variant in enumerate(variants):
        rate = false_rate(table, model, variant)
        if rate is None:
            continue
        style = _style(variant)
        axes.barh(row, rate.mean, height=0.7, color=style["color"], alpha=0.85, zorder=2)
        if rate.mean == 0:
            axes.text(0, row, " 0", va="center", color="0.3", fontsize=7)
        low = min(rate.half, rate.mean)
        if rate.half:
            axes.errorbar(
                rate.mean, row, xerr=[[low], [rate.half]], color="0.15", elinewidth=0.8, capsize=1.5
            )
    axes.set_yticks(range(len(variants)), [method(v).label for v in variants])
    for tick, variant in zip(axes.get_yticklabels(), variants, strict=True):
        tick.set_color(ink(method(variant).colour))
        tick.set_fontweight("bold" if variant == "geosd" else "normal")
    axes.tick_params(axis="y", length=0)
    axes.set_ylim(len(variants) - 0.4, -0.6)
    axes.set_xlim(left=0)
    axes.set_xlabel("wrong at C(x) ≥ .75 (%)")


def _reliable(axes: Axes, table: pd.DataFrame, model: str, variants: Sequence[str]) -> None:
    axes.plot([0, 1], [0, 100], color="0.55", lw=0.7, zorder=0)
    for variant in variants:
        _line(axes, variant, reliability(table, model, variant))
    axes.set_xlim(0, 1.02)
    axes.set_ylim(0, 103)
    axes.xaxis.set_major_formatter(PercentFormatter(1.0, decimals=0, symbol=""))
    axes.set_xlabel("consensus strength C(x) (%)")
    axes.set_ylabel("majority answer right (%)")


def _legend(figure: Figure, variants: Sequence[str]) -> None:
    figure.legend(
        [Line2D([], [], **_style(variant)) for variant in variants],
        [method(variant).label for variant in variants],
        loc="outside lower center",
        ncols=len(variants),
        columnspacing=1.0,
        handlelength=1.5,
        handletextpad=0.4,
        borderpad=0,
    )
