"""From local concentration to false consensus (the paper's Figure consensus)."""

import math
from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, NullLocator, PercentFormatter

from geosd.reporting import figures
from geosd.reporting.figures import figure_handles
from geosd.reporting.method_style import (
    ABLATION,
    BACKGROUND,
    OTHER,
    coloured_methods,
    method_style,
    method_text_colour,
    ordered_methods,
)
from geosd.scores.statistics import FEWEST_FOR_INTERVAL, independent_statistics, student_interval

STRENGTHS = (0.0, 0.25, 0.375, 0.5, 0.625, 0.75, 0.875, 1.0)
"""Edges of the bins of C(x), each closed below; the last holds 1, and one edge is tau."""
FEWEST = 10
"""Problems, all seeds together, below which a bin is not drawn."""
PERCENT = (0.0, 100.0)


def consensus_figure_points(majority: pd.DataFrame) -> pd.DataFrame:
    """Accuracy of the majority answer of each run, by the strength of the majority.

    `majority` has one model's rows `majority_accuracy` of the consensus table; a problem without
    any answered sample is left out. A row a run and bin of `STRENGTHS` that holds at least `FEWEST`
    problems of the variant: `variant`, `seed`, `draw`, `strength` (mean C(x)), `problems` of that
    bin in all runs and `accuracy` in percent.
    """
    answered = majority[majority["x"] > 0]
    # The slack keeps 3 of 4 at or above .75, whatever the float division made of it.
    edges = np.searchsorted(STRENGTHS[:-1], answered["x"].astype(float) + 1e-12, side="right")
    answered = answered.assign(bin=edges)
    rows = []
    for (variant, _), in_bin in answered.groupby(["variant", "bin"]):
        problems = in_bin["problems"].sum()
        if problems < FEWEST:
            continue
        strength = np.average(in_bin["x"], weights=in_bin["problems"])
        for (seed, draw), run in in_bin.groupby(["seed", "draw"]):
            accuracy = np.average(run["value"], weights=run["problems"])
            rows.append((variant, seed, draw, strength, problems, accuracy))
    return pd.DataFrame(
        rows, columns=["variant", "seed", "draw", "strength", "problems", "accuracy"]
    )


@figures.themed
def plot(consensus: pd.DataFrame, models: Sequence[str], methods: Sequence[str]) -> Figure:
    """Plot `figure_consensus`: three panels a model; ablations, as in the paper, are left out."""
    shown = [v for v in ordered_methods(methods) if method_style(v).kind not in (ABLATION, OTHER)]
    runs = consensus[consensus["variant"].isin(shown)]
    covered = runs[runs["quantity"] == "pass@k"]
    present = ordered_methods(covered.loc[covered["model"].isin(models), "variant"])
    figure = Figure(figsize=(figures.PAGE_IN, 0.45 + 1.45 * len(models)), layout="constrained")
    shared = {"sharex": "col", "sharey": "col", "width_ratios": (1.1, 0.8, 1.1)}
    grid = figure.subplots(len(models), 3, squeeze=False, **shared)
    for model, (coverage, wrong, right) in zip(models, grid, strict=True):
        quantities = dict(iter(runs[runs["model"] == model].groupby("quantity")))
        nothing = runs.iloc[:0]
        _pass_at_k(coverage, quantities["pass@k"], present)
        _false_consensus(wrong, quantities.get("false_consensus", nothing), present)
        _reliability(right, quantities.get("majority_accuracy", nothing), present)
        coverage.set_ylabel(f"{model}\n\nOOD pass@k (%)")
        for axes in (coverage, wrong, right):
            axes.tick_params(labelbottom=True)
    for axes, letter in zip(grid[0], "ABC", strict=True):
        figures.figure_panel_title(axes, letter)
    grid[0, 1].set_xlim(left=0)  # of all models, now that all whiskers are drawn
    for axes in grid[:-1].flat:
        axes.set_xlabel("")
    figures.figure_legend_below(figure, figure_handles(present), handlelength=2.2)
    return figure


def _pass_at_k(axes: Axes, runs: pd.DataFrame, variants: Sequence[str]) -> None:
    values = independent_statistics(runs, "value", "problems")
    figures.figure_lines(axes, values, "x", "value", variants, PERCENT)
    # All k make the line and the band; markers at every k would hide it.
    for line in axes.lines:
        powers = [at for at, k in enumerate(line.get_xdata()) if math.log2(k).is_integer()]
        line.set_markevery(powers)
    ticks = [2**i for i in range(int(math.log2(runs["x"].max())) + 1)]
    axes.set_xscale("log", base=2)
    axes.xaxis.set_major_locator(FixedLocator(ticks))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set_xticklabels([str(k) for k in ticks])
    axes.set(xlabel="samples k")


def _false_consensus(axes: Axes, runs: pd.DataFrame, variants: Sequence[str]) -> None:
    colours = dict.fromkeys(variants, BACKGROUND)
    for variant in coloured_methods(variants):
        colours[variant] = method_style(variant).colour
    values = independent_statistics(runs, "value", "problems").groupby("variant")["value"]
    for row, variant in enumerate(variants):
        if variant in values.groups:
            _bar(axes, row, values.get_group(variant), colours[variant])
    axes.set_yticks(range(len(variants)), [method_style(v).label for v in variants])
    for tick, variant in zip(axes.get_yticklabels(), variants, strict=True):
        tick.set_color(method_text_colour(colours[variant]))
        tick.set_fontweight("bold" if variant == "geosd" else "normal")
    axes.tick_params(axis="y", length=0, labelsize=figures.SMALLEST_PT)
    axes.set_ylim(len(variants) - 0.4, -0.6)
    axes.set(xlabel="wrong at C(x) ≥ 0.75 (%)")


def _bar(axes: Axes, row: int, shares: pd.Series, colour: str) -> None:
    """Draw the mean of a method's shares as a bar, with its interval, or with the shares."""
    mean = shares.mean()
    axes.barh(row, mean, 0.7, color=colour)
    if len(shares) >= FEWEST_FOR_INTERVAL:
        ends = np.clip(student_interval(shares), *PERCENT)
        rows = (row, row)
        axes.plot(ends, rows, color="white", lw=2.2, solid_capstyle="butt")  # it shows on black
        axes.plot(ends, rows, color="0.25", lw=0.9, solid_capstyle="butt")
    elif len(shares) > 1:
        point = {"ms": 2, "mfc": "0.25", "mec": "white", "mew": 0.3}
        axes.plot(shares, [row] * len(shares), "o", **point)
    if mean == 0:
        axes.text(0, row, " 0", va="center", color="0.3", fontsize=figures.LABEL_PT)


def _reliability(axes: Axes, majority: pd.DataFrame, variants: Sequence[str]) -> None:
    axes.plot([0, 1], [0, 100], color="0.55", lw=0.7, zorder=0)
    points = consensus_figure_points(majority)
    values = independent_statistics(points, "accuracy", "problems")
    figures.figure_lines(axes, values, "strength", "accuracy", variants, PERCENT)
    reference = points[points["variant"] == variants[0]]
    for strength, problems in reference.groupby("strength")["problems"].first().items():
        count = {"ha": "center", "va": "bottom", "color": "0.35", "fontsize": figures.SMALLEST_PT}
        axes.text(strength, 104, f"{problems:,}", **count)
    axes.set_xlim(0, 1.02)
    axes.set_ylim(0, 103)
    axes.xaxis.set_major_formatter(PercentFormatter(1.0, decimals=0, symbol=""))
    axes.set(xlabel="consensus strength C(x) (%)", ylabel="majority answer right (%)")
