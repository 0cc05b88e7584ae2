"""From local concentration to false consensus (the paper's Figure consensus)."""

import math
from collections.abc import Iterable, Sequence

import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, NullLocator, PercentFormatter

from geosd.reporting import figures
from geosd.reporting.method_style import ABLATION, BACKGROUND, OTHER, method, ordered, text_colour
from geosd.reporting.specs import OutputSpec

SPEC = OutputSpec(
    title="what the samples agree on",
    caption="""What the samples of each OOD problem agree on; means over seeds with 95 % confidence
    intervals (Student's t over runs). A: pass@k against the number of samples k. B: share of
    problems on which at least three quarters of the samples give one and the same wrong answer. C:
    how often the majority answer is right against the share C(x) of samples that give it, problems
    binned by C(x); on the diagonal, agreement says how reliable the answer is. Bins of fewer than
    ten problems are not drawn, problems without any answer have no majority. Of more than five
    methods those without a colour are grey lines, without intervals in A and C.""",
    reads=("consensus",),
    settings=("models", "methods"),
    paper="Figure consensus",
    one_of=("pi_0", "sft", "grpo", "fwdkl", "revkl", "jsd", "skewkl", "tropd", "tip", "geosd"),
    needs=("benchmarks",),
)

STRENGTHS = (0.0, 0.25, 0.375, 0.5, 0.625, 0.75, 0.875, 1.0)
"""Edges of the bins of C(x), each closed below; the last holds 1, and one edge is tau."""
FEWEST = 10
"""Problems, all seeds together, below which a bin is not drawn."""


def share_interval(values: Iterable[float]) -> tuple[float, float]:
    """95 % interval of a mean percentage over runs, cut at 0 and 100."""
    return figures.interval_within(values, 0.0, 100.0)


def consensus_figure_points(majority: pd.DataFrame) -> pd.DataFrame:
    """Accuracy of the majority answer of each run, by the strength of the majority.

    `majority` has one model's rows `majority_accuracy` of the consensus table; a problem without
    any answered sample is left out. A row a run and bin of `STRENGTHS` that holds at least `FEWEST`
    problems of the variant: `variant`, `seed`, `strength` (mean C(x)) and `accuracy` in percent.
    """
    answered = majority[majority["x"] > 0]
    # The slack keeps 3 of 4 at or above .75, whatever the float division made of it.
    edges = np.searchsorted(STRENGTHS[:-1], answered["x"].astype(float) + 1e-12, side="right")
    answered = answered.assign(bin=edges)
    rows = []
    for (variant, _), in_bin in answered.groupby(["variant", "bin"]):
        if in_bin["problems"].sum() < FEWEST:
            continue
        strength = np.average(in_bin["x"], weights=in_bin["problems"])
        for seed, run in in_bin.groupby("seed"):
            accuracy = np.average(run["value"], weights=run["problems"])
            rows.append((variant, seed, strength, accuracy))
    return pd.DataFrame(rows, columns=["variant", "seed", "strength", "accuracy"])


@figures.themed
def plot(consensus: pd.DataFrame, models: Sequence[str], methods: Sequence[str]) -> Figure:
    """Plot `figure_consensus`: three panels a model; ablations, as in the paper, are left out."""
    shown = [v for v in ordered(methods) if method(v).kind not in (ABLATION, OTHER)]
    runs = consensus[consensus["variant"].isin(shown)]
    covered = runs[runs["quantity"] == "pass@k"]
    present = ordered(covered.loc[covered["model"].isin(models), "variant"])
    figure = Figure(figsize=(figures.PAGE_IN, 0.35 + 2.0 * len(models)), layout="constrained")
    shared = {"sharex": "col", "sharey": "col", "width_ratios": (1.1, 0.8, 1.1)}
    grid = figure.subplots(len(models), 3, squeeze=False, **shared)
    for model, (coverage, wrong, right) in zip(models, grid, strict=True):
        of_model = runs[runs["model"] == model]
        quantities = dict(iter(of_model.groupby("quantity")))
        nothing = of_model.iloc[:0]
        _pass_at_k(coverage, quantities["pass@k"], present)
        _false_consensus(wrong, quantities.get("false_consensus", nothing), present)
        _reliability(right, quantities.get("majority_accuracy", nothing), present)
        for axes, letter in zip((coverage, wrong, right), "ABC", strict=True):
            figures.panel_title(axes, letter, model)
            axes.tick_params(labelbottom=True)
    grid[0, 1].set_xlim(left=0)  # of all models, now that all whiskers are drawn
    for axes in grid[:-1].flat:
        axes.set_xlabel("")
    figures.legend_below(figure, figures.method_handles(present), handlelength=2.2)
    return figure


def _pass_at_k(axes: Axes, runs: pd.DataFrame, variants: Sequence[str]) -> None:
    figures.method_lines(axes, runs, "x", "value", variants, share_interval)
    # All k make the line and the band; markers at every k would hide it.
    for line in axes.lines:
        powers = [at for at, k in enumerate(line.get_xdata()) if math.log2(k).is_integer()]
        line.set_markevery(powers)
    ticks = [2**i for i in range(int(math.log2(runs["x"].max())) + 1)]
    axes.set_xscale("log", base=2)
    axes.xaxis.set_major_locator(FixedLocator(ticks))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set_xticklabels([str(k) for k in ticks])
    axes.set(xlabel="samples $k$", ylabel="OOD pass@$k$ (%)")


def _false_consensus(axes: Axes, runs: pd.DataFrame, variants: Sequence[str]) -> None:
    strong = figures.coloured(variants)
    colours = {v: method(v).colour if v in strong else BACKGROUND for v in variants}
    sns.barplot(
        runs,
        x="value",
        y="variant",
        order=list(variants),
        errorbar=share_interval,
        err_kws={"color": "0.45", "linewidth": 0.9},
        capsize=0.25,
        width=0.7,
        saturation=1,
        hue="variant",
        hue_order=list(variants),
        palette=colours,
        legend=False,
        ax=axes,
    )
    rates = runs.groupby("variant")["value"].mean()
    for row, variant in enumerate(variants):
        if rates.get(variant) == 0:
            axes.text(0, row, " 0", va="center", color="0.3", fontsize=7)
    axes.set_yticks(range(len(variants)), [method(v).drawn for v in variants])
    for tick, variant in zip(axes.get_yticklabels(), variants, strict=True):
        tick.set_color(text_colour(colours[variant]))
        tick.set_fontweight("bold" if variant == "geosd" else "normal")
    axes.tick_params(axis="y", length=0)
    axes.set_ylim(len(variants) - 0.4, -0.6)
    axes.set(xlabel=r"wrong at $C(x)\geq 0.75$ (%)", ylabel="")


def _reliability(axes: Axes, majority: pd.DataFrame, variants: Sequence[str]) -> None:
    axes.plot([0, 1], [0, 100], color="0.55", lw=0.7, zorder=0)
    reliability = consensus_figure_points(majority)
    figures.method_lines(axes, reliability, "strength", "accuracy", variants, share_interval)
    axes.set_xlim(0, 1.02)
    axes.set_ylim(0, 103)
    axes.xaxis.set_major_formatter(PercentFormatter(1.0, decimals=0, symbol=""))
    axes.set(xlabel="consensus strength $C(x)$ (%)", ylabel="majority answer right (%)")
