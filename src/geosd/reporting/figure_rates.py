"""Each method's path over the learning rates through the ID-OOD plane."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from geosd.reporting.figures import COLUMN_IN, PAGE_IN, SHADE, legend_below, themed
from geosd.reporting.id_ood_plane import (
    base_point,
    label_planes,
    method_label,
    plane_paths,
    plane_whiskers,
)
from geosd.reporting.label_placement import LabelledPoint
from geosd.reporting.method_style import (
    ABLATION,
    GEOSD,
    hue_by_method,
    method,
    ordered,
    style_by_method,
)
from geosd.reporting.method_tables import accuracy_name
from geosd.reporting.run_accuracies import BENCHMARKS, is_at_selected_rate, rate_runs
from geosd.reporting.specs import OutputSpec, SweepPoints
from geosd.scores.rate_selection import COLLAPSE
from geosd.scores.score_table import ID, OOD_AVERAGE

SPEC = OutputSpec(
    title="every method over the learning rates, on the ID-OOD plane",
    caption="""A column for each model, a row for each kind of method. A coloured line is one
    method: from the base model through its learning rates, a larger marker for a larger rate; the
    methods of the other rows are grey. Means over seeds; whiskers are one standard deviation. The
    named point of each method is at its selected rate. In the shaded region a model is ten points
    or more below the base model, in or out of distribution.""",
    reads=("scores",),
    settings=("models", "points", "selected_rates"),
    swept=("learning_rate",),
    compares=("pi_0",),
    needs=("benchmarks", "sweep"),
)

AREAS = (4.0, 22.0)
"""Of the markers of the smallest and the largest rate, in points squared."""
PATH = 2
"""How far in front the coloured paths lie (`zorder`)."""


@themed
def plot(
    scores: pd.DataFrame,
    models: Sequence[str],
    points: SweepPoints,
    selected_rates: Mapping[str, Mapping[str, float]],
) -> Figure:
    """Plot `figure_rates`: each model's paths over the learning rates, a row a kind of method."""
    sweeps = {model: rate_runs(scores, model, points[model]) for model in models}
    rows = methods_by_kind(name for runs, _ in sweeps.values() for name in runs["variant"])
    width = COLUMN_IN if len(models) == 1 else PAGE_IN
    figure = Figure(figsize=(width, 0.5 + 1.45 * len(rows)), layout="constrained")
    panels = figure.subplots(len(rows), len(models), squeeze=False, sharex=True, sharey=True)
    labels: dict[Axes, list[LabelledPoint]] = {}
    for (model, (runs, base)), column in zip(sweeps.items(), panels.T, strict=True):
        for axes, variants in zip(column, rows.values(), strict=True):
            labels[axes] = _panel(axes, runs, base.mean(), variants, selected_rates[model])
        column[0].set_title(model)
        column[-1].set_xlabel(f"ID {accuracy_name(scores)} (%)")
    for axes, kind in zip(panels[:, 0], rows, strict=True):
        axes.set_ylabel(f"{kind}\nOOD {accuracy_name(scores)} (%)", fontsize=7)
    for (_, base), column in zip(sweeps.values(), panels.T, strict=True):
        for axes in column:
            _shade_collapse(axes, base.mean())
    _legend(figure)
    label_planes(figure, labels, size=6, lines=_coloured_paths)
    return figure


def _coloured_paths(axes: Axes) -> list[Any]:
    return [line.get_xydata() for line in axes.lines if line.get_zorder() == PATH]


def methods_by_kind(variants: Iterable[str]) -> dict[str, list[str]]:
    """Kind -> its methods; ablations stand with the method.

    Example:
        >>> methods_by_kind(["geosd_plain", "geosd", "tip"])
        {'Filtering': ['tip'], 'GeoSD': ['geosd', 'geosd_plain']}
    """
    rows: dict[str, list[str]] = {}
    for name in ordered(variants):
        kind = method(name).kind
        rows.setdefault(GEOSD if kind == ABLATION else kind, []).append(name)
    return rows


def _panel(
    axes: Axes,
    runs: pd.DataFrame,
    base: pd.Series,
    variants: Sequence[str],
    selected: Mapping[str, float],
) -> list[LabelledPoint]:
    """Draw the paths of a model's methods, those of one kind in colour; return what to label."""
    means = runs.groupby(["variant", "learning_rate"], sort=False)[[*BENCHMARKS]].mean()
    means = means.reset_index()
    start = pd.DataFrame({"variant": means["variant"].unique()}).assign(**base)
    paths = pd.concat([start, means])
    own = paths["variant"].isin(variants)
    if not own.all():
        plane_paths(axes, paths[~own], units="variant", color="0.7", lw=0.5, zorder=1)
    dashes = {"style": "variant", "style_order": variants}  # methods of a kind share a marker
    plane_paths(axes, paths[own], lw=1.0, zorder=PATH, **hue_by_method(variants), **dashes)
    coloured = runs[runs["variant"].isin(variants)]
    point = coloured["variant"] + " " + coloured["learning_rate"].astype(str)
    plane_whiskers(axes, coloured.assign(point=point), "point", "sd", alpha=0.4)
    shown, rates = means[means["variant"].isin(variants)], runs["learning_rate"]
    sizes = {"size": "learning_rate", "sizes": AREAS}
    sizes["size_norm"] = LogNorm(rates.min(), rates.max())
    points = {"x": ID, "y": OOD_AVERAGE, "legend": False, "ax": axes}
    points |= sizes | style_by_method(variants)
    at = shown[is_at_selected_rate(shown, selected)]
    sns.scatterplot(shown, linewidth=0.3, zorder=3, **points)
    at_base = base_point(axes, base, size=4.5, zorder=3.5)
    sns.scatterplot(at, linewidth=0.9, edgecolor="black", zorder=4, **points)
    axes.margins(0.05)
    axes.set(xlabel="", ylabel="")
    return [
        at_base,
        *(LabelledPoint(row.id, row.ood_avg, "", "black", 2.0) for row in shown.itertuples()),
        *(method_label(row.variant, row.id, row.ood_avg, 3.0) for row in at.itertuples()),
    ]


def _shade_collapse(axes: Axes, base: pd.Series) -> None:
    """Shade where a model is `COLLAPSE` points or more below pi_0 on either axis."""
    (left, right), (low, high) = axes.get_xlim(), axes.get_ylim()
    axes.axvspan(left, base[ID] - COLLAPSE, color=SHADE, lw=0, zorder=0)
    axes.axhspan(low, base[OOD_AVERAGE] - COLLAPSE, color=SHADE, lw=0, zorder=0)
    axes.set(xlim=(left, right), ylim=(low, high))


def _legend(figure: Figure) -> None:
    dot = {"color": "0.6", "marker": "o", "ls": ""}
    small, large = (area**0.5 for area in AREAS)
    handles = {
        "smallest": Line2D([], [], ms=small, mew=0, **dot),
        "largest rate": Line2D([], [], ms=large, mew=0, **dot),
        "selected rate": Line2D([], [], ms=large, mec="black", mew=0.9, **dot),
        "collapse": Patch(color=SHADE),
    }
    legend_below(figure, handles)
