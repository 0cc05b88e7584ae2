"""The pull of one state and the drift of a whole run (the paper's Figure mechanism)."""

import math
from collections.abc import Sequence

import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator, NullLocator

from geosd.reporting.figures import PAGE_IN, panel_title, themed
from geosd.reporting.label_placement import label_line_ends
from geosd.reporting.method_style import DASHED, DIVERGENCES, SOLID, method, style_by_method
from geosd.reporting.specs import OutputSpec
from geosd.scores.state_table import bin_states_by_overlap, states_of_model

SPEC = OutputSpec(
    title="gradient norm against overlap, and drift over steps",
    caption="""A: norm of each divergence's gradient with respect to the student's logits, against
    the overlap Σ √(p q) of student and teacher, at every response position of one rollout of π₀ on
    each training problem; medians (lines) and quartiles (bands) in bins of overlap that hold at
    least ten positions, from the lowest of these bins on, and above them how many positions lie
    where; Hellinger is the divergence of GeoSD. B: mean Fisher-Rao distance from π₀ over the
    positions that a run visits at each step; mean over seeds and its standard deviation.""",
    reads=("states", "drift_over_steps"),
    settings=("models", "methods"),
    trained=("fwdkl", "geosd_no_prox", "geosd"),
    paper="Figure mechanism",
)

TRAINED_BY = {"fwdkl": "fwdkl", "revkl": "revkl", "hellinger": "geosd"}
"""The method that is trained by each divergence drawn: it has the method's colour and marker."""
BAND = {"alpha": 0.16, "lw": 0}
BINS = 20
"""Bins of overlap from 0 to 1."""


@themed
def plot(
    states: pd.DataFrame,
    drift_over_steps: pd.DataFrame,
    models: Sequence[str],
    methods: Sequence[str],
) -> Figure:
    """Plot `figure_mechanism`: gradient norm against overlap, drift over steps; a row a model."""
    figure = Figure(figsize=(PAGE_IN, 2.6 * len(models)), layout="constrained")
    layout = [row for m in models for row in ([f"n {m}", f"B {m}"], [f"A {m}", f"B {m}"])]
    panels = figure.subplot_mosaic(layout, height_ratios=[1.3, 5] * len(models))
    for model in models:
        of_model = states_of_model(states, model)
        binned = bin_states_by_overlap(of_model, BINS)
        _norms(panels[f"A {model}"], binned)
        _counts(panels[f"n {model}"], of_model, panels[f"A {model}"].get_xlim())
        panel_title(panels[f"n {model}"], "A", model)
        panel_title(panels[f"B {model}"], "B", model)
    runs = drift_over_steps[drift_over_steps["variant"].isin(methods)]
    drifts = {panels[f"B {model}"]: runs[runs["model"] == model] for model in models}
    for axes, of_model in drifts.items():
        _drift(axes, of_model)
    for axes, of_model in drifts.items():
        _room(axes)
        label_line_ends(axes, of_model, "step", "value")
    return figure


def _room(axes: Axes) -> None:
    """Room for labels to the right of the last step, outside the axis."""
    last = axes.dataLim.x1 or 1.0
    ticks = [tick for tick in MaxNLocator(5, integer=True).tick_values(0, last) if tick <= last]
    axes.set_xlim(0, 1.34 * last)
    axes.set_xticks(ticks)
    axes.spines["bottom"].set_bounds(0, last)


def _counts(axes: Axes, states: pd.DataFrame, limits: tuple[float, float]) -> None:
    """How many positions lie at each overlap: most of them agree."""
    overlap = states["overlap"].clip(0, 1)
    sns.histplot(x=overlap, bins=40, binrange=(0, 1), color="0.6", alpha=1, lw=0, ax=axes)
    axes.set_yscale("log")
    axes.set(xlim=limits, xlabel="", ylabel="positions", xticklabels=[])
    axes.tick_params(axis="x", length=0)
    axes.yaxis.set_minor_locator(NullLocator())


def _norms(axes: Axes, binned: pd.DataFrame) -> None:
    """Median and quartiles of the gradients' norms in each bin of overlap that has them."""
    drawn = {DIVERGENCES[name]: method(trained) for name, trained in TRAINED_BY.items()}
    columns = {f"gradient_{name}": DIVERGENCES[name] for name in TRAINED_BY}
    norms = binned.rename(columns=columns)
    sns.lineplot(
        norms.melt("mean_overlap", list(drawn), "divergence", "norm"),
        x="mean_overlap",
        y="norm",
        estimator="median",
        errorbar=("pi", 50),
        hue="divergence",
        palette={label: look.colour for label, look in drawn.items()},
        style="divergence",
        dashes={label: DASHED if label == DIVERGENCES["revkl"] else SOLID for label in drawn},
        markers={label: look.marker for label, look in drawn.items()},
        markersize=3.4,
        markeredgewidth=0,
        err_kws=BAND,
        ax=axes,
    )
    lowest = math.floor(BINS * binned["mean_overlap"].min() + 1e-9) / BINS
    axes.set_xlim(min(lowest, 1 - 1 / BINS), 1)
    axes.set_xlabel(r"overlap of student and teacher, $\Sigma_i\,(p_i q_i)^{1/2}$")
    axes.set_ylim(bottom=0)
    axes.set_ylabel("gradient norm at the logits")
    sns.move_legend(axes, "best", title="", handlelength=2.2)


def _drift(axes: Axes, runs: pd.DataFrame) -> None:
    """Mean and standard deviation over seeds at each step."""
    style = style_by_method(runs["variant"], dashed=("geosd_no_prox",)) | {"markers": False}
    sns.lineplot(
        runs, x="step", y="value", errorbar="sd", err_kws=BAND, legend=False, ax=axes, **style
    )
    axes.set(xlabel="updates $k$", ylabel=r"$d_{\mathrm{FR}}(\pi_k, \pi_0)$ (radians)")
    axes.set_ylim(bottom=0)
