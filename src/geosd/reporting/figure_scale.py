"""ID and OOD accuracy over a ladder of models, before and after training (Figure scale)."""

import os
from collections.abc import Sequence

import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from geosd.reporting.figures import COLUMN_IN, legend_below, panel_title, themed
from geosd.reporting.method_style import method, style_by_method, text_colour
from geosd.reporting.method_tables import accuracy_name
from geosd.reporting.specs import OutputSpec
from geosd.scores.score_table import ID, OOD_AVERAGE

SPEC = OutputSpec(
    title="accuracy over the sizes of a model",
    caption="""Accuracy in distribution (A) and on average out of distribution (B) of the base model
    and of GeoSD over models of growing size, mean over seeds; the bands are one standard deviation
    over seeds wide on either side. The numbers are the gains over the base model in percentage
    points.""",
    reads=("scores",),
    settings=("models", "methods"),
    paper="Figure scale",
    compares=("pi_0", "geosd"),
    needs=("benchmarks", "models"),
)

COMPARED = ("pi_0", "geosd")


def model_sizes(names: Sequence[str]) -> tuple[str, list[str]]:
    """The beginning up to a hyphen that names of models share, and the rest of each.

    A model of the shared name alone is called `m`: it is the one that the family is named after.

    Example:
        >>> model_sizes(["mini-qwen3-s", "mini-qwen3", "mini-qwen3-l"])
        ('mini-qwen3', ['s', 'm', 'l'])
        >>> model_sizes(["qwen3-8b", "olmo"])
        ('', ['qwen3-8b', 'olmo'])
    """
    # With a hyphen behind each name, `mini-qwen3` itself begins with `mini-qwen3-`.
    shared = os.path.commonprefix([f"{name}-" for name in names]).rpartition("-")[0]
    if not shared:
        return "", list(names)
    return shared, [name[len(shared) + 1 :] or "m" for name in names]


def ladder_accuracies(scores: pd.DataFrame, models: Sequence[str]) -> pd.DataFrame:
    """Accuracy in percent, by run and benchmark; `size` is the number of the model, from 0."""
    rows = scores[
        (scores["metric"] == "avg@k")
        & scores["model"].isin(models)
        & scores["variant"].isin(COMPARED)
        & scores["benchmark"].isin((ID, OOD_AVERAGE))
    ]
    sizes = {model: size for size, model in enumerate(models)}
    return rows.rename(columns={"value": "accuracy"}).assign(size=rows["model"].map(sizes))


@themed
def plot(scores: pd.DataFrame, models: Sequence[str], methods: Sequence[str]) -> Figure:
    """Plot `figure_scale`: ID and OOD accuracy of pi_0 and geosd over models of growing size."""
    runs = ladder_accuracies(scores, models)
    family, sizes = model_sizes(models)
    figure = Figure(figsize=(COLUMN_IN, 3.5), layout="constrained")
    panels = figure.subplots(2, 1, sharex=True)
    titles = {ID: "ID", OOD_AVERAGE: "OOD average"}
    for axes, letter, (benchmark, title) in zip(panels, "AB", titles.items(), strict=True):
        drawn = runs[runs["benchmark"] == benchmark]
        _lines(axes, drawn)
        _gains(axes, drawn)
        panel_title(axes, letter, title)
        axes.set(xlim=(-0.5, len(models) - 0.5), xlabel="", ylabel=f"{accuracy_name(scores)} (%)")
    panels[1].set_xticks(range(len(models)), sizes)
    panels[1].set_xlabel(f"size of {family}" if family else "model")
    if not family:
        panels[1].tick_params(axis="x", rotation=30)
    names = [method(name).drawn for name in COMPARED]
    legend_below(figure, dict(zip(names, panels[0].lines, strict=False)), handlelength=2.2)
    return figure


def _lines(axes: Axes, runs: pd.DataFrame) -> None:
    sns.lineplot(
        runs,
        x="size",
        y="accuracy",
        errorbar="sd",
        err_kws={"alpha": 0.18, "lw": 0},
        markersize=4,
        markeredgewidth=0.4,
        legend=False,
        ax=axes,
        **style_by_method(COMPARED, dashed=("pi_0",)),
    )


def _gains(axes: Axes, runs: pd.DataFrame) -> None:
    """The change from pi_0 to geosd of each model, as a row above the lines."""
    means = runs.groupby(["variant", "size"])["accuracy"].mean()
    low, high = axes.get_ylim()
    axes.set_ylim(low, high + 0.14 * (high - low))
    for size, gain in (means["geosd"] - means["pi_0"]).items():
        axes.text(
            size,
            0.99,
            f"{gain:+.1f}".replace("-", "−"),
            transform=axes.get_xaxis_transform(),
            ha="center",
            va="top",
            fontsize=6.5,
            color=text_colour(method("geosd").colour),
        )
