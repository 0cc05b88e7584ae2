"""ID gain against OOD gain of every method (the paper's Figure frontier)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from geosd.reporting.figures import COLUMN_IN, PAGE_IN, legend_below, plane_whiskers
from geosd.reporting.label_placement import LabelledPoint, place_labels
from geosd.reporting.method_style import method, ordered, style_by_method, text_colour
from geosd.reporting.run_accuracies import base_accuracies, run_accuracies
from geosd.reporting.specs import OutputSpec
from geosd.scores.score_table import ID, OOD_AVERAGE, scores_by_seed

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
CROWDED = 0.25
"""Points nearer to the origin than this share of the farthest one's distance stand in a crowd."""
CROWD = 4
"""So many points in a crowd have a panel of their own."""


def frontier_figure_points(
    scores: pd.DataFrame, model: str, methods: Sequence[str]
) -> pd.DataFrame:
    """Points of the frontier figure: ID and OOD gain of every run over the base model.

    Variants without scores are left out, and pi_0 is the origin, not a point.

    Returns:
        One row a run: `variant`, in the paper's order, `seed`, `id_gain` and `ood_gain` (accuracy
        minus the base model's mean, in percentage points), and `pass_at_k`, the OOD pass@k in
        percent; NaN where it was not scored.

    Raises:
        ValueError: The base model was not evaluated.
    """
    base = base_accuracies(scores, model, (ID, OOD_AVERAGE)).mean()
    tables = []
    for variant in ordered(methods):
        runs = run_accuracies(scores, model, variant, (ID, OOD_AVERAGE))
        if variant == "pi_0" or runs.empty:
            continue
        pass_at_k = scores_by_seed(scores, model, variant, OOD_AVERAGE, "pass@k")
        gained = {
            "id_gain": runs[ID] - base[ID],
            "ood_gain": runs[OOD_AVERAGE] - base[OOD_AVERAGE],
            "pass_at_k": runs["seed"].map(pass_at_k).astype(float),
        }
        tables.append(pd.DataFrame({"variant": variant, "seed": runs["seed"], **gained}))
    none = pd.DataFrame(columns=["variant", "seed", "id_gain", "ood_gain", "pass_at_k"])
    return pd.concat(tables, ignore_index=True) if tables else none


def mean_frontier_points(runs: pd.DataFrame) -> pd.DataFrame:
    """Means of `frontier_figure_points` over the runs of each variant, indexed by it."""
    return runs.groupby("variant", sort=False)[["id_gain", "ood_gain", "pass_at_k"]].mean()


def crowded_variants(means: pd.DataFrame) -> list[str]:
    """Variants that the frontier figure would draw upon each other at the origin; none if few."""
    distance = means[["id_gain", "ood_gain"]].abs().max(axis=1)
    near = list(means.index[distance <= CROWDED * distance.max()])
    return near if len(near) >= CROWD else []


def draw(scores: pd.DataFrame, models: Sequence[str], methods: Sequence[str]) -> Figure:
    """Draw `figure_frontier`: OOD gain against ID gain of every method, dot area by pass@k.

    A panel per model. At most three panels stand in a row; where points are crowded, a second one
    below each. One model's figure is a column wide, else it is page wide.
    """
    runs = {model: frontier_figure_points(scores, model, methods) for model in models}
    crowds = {
        model: crowded_variants(mean_frontier_points(of_model)) for model, of_model in runs.items()
    }
    rows_of_model = 2 if any(crowds.values()) else 1
    columns = min(len(models), 3)
    rows = rows_of_model * -(-len(models) // columns)
    size = (COLUMN_IN, 2.75 * rows) if len(models) == 1 else (PAGE_IN, 2.5 * rows)
    figure = Figure(figsize=size, layout="constrained")
    grid = figure.subplots(rows, columns, squeeze=False)
    pass_at_k = pd.concat([mean_frontier_points(of_model) for of_model in runs.values()])[
        "pass_at_k"
    ]
    sizes = marker_size_range(pass_at_k.dropna())
    labels: dict[Axes, list[LabelledPoint]] = {}
    for number, (model, of_model) in enumerate(runs.items()):
        whole, *below = grid[number // columns * rows_of_model :, number % columns][:rows_of_model]
        whole.set_title(model)
        labels[whole] = _panel(whole, of_model, sizes)
        if crowds[model]:
            in_crowd = of_model[of_model["variant"].isin(crowds[model])]
            labels[below[0]] = _panel(below[0], in_crowd, sizes, whiskers_fit=False)
            (left, right), (low, high) = below[0].get_xlim(), below[0].get_ylim()
            size, style = (right - left, high - low), {"fill": False, "ls": "--", "lw": 0.6}
            whole.add_patch(Rectangle((left, low), *size, ec="0.55", **style))
            names = {point.text for point in labels[below[0]]}
            labels[whole] = [replace(p, text="") if p.text in names else p for p in labels[whole]]
    for axes in grid.flat:
        if axes not in labels:
            axes.remove()
            continue
        first = axes in grid[:, 0]
        axes.set(
            xlabel="ID gain over π₀ (points)",
            ylabel="OOD gain over π₀ (points)" if first else "",
        )
    if len(pass_at_k.dropna()):
        k = scores.loc[scores["metric"] == "pass@k", "k"].max()
        _legend(figure, sizes, f"OOD pass@{int(k)}")
    for axes, points in labels.items():
        place_labels(axes, points, size=7, bold=[method("geosd").label])
    return figure


def _panel(
    axes: Axes, runs: pd.DataFrame, sizes: tuple[float, float], whiskers_fit: bool = True
) -> list[LabelledPoint]:
    """Draw means and deviations, with room for the whiskers or cutting these off; the labels."""
    axes.axhline(0, color="0.55", lw=0.6, zorder=0)
    axes.axvline(0, color="0.55", lw=0.6, zorder=0)
    style = style_by_method(runs["variant"])
    plane_whiskers(
        axes,
        runs,
        "id_gain",
        "ood_gain",
        "variant",
        "sd",
        palette=style["palette"],
        alpha=0.6,
        err_kws={"elinewidth": 0.7, "zorder": 2},
    )
    means = mean_frontier_points(runs).fillna({"pass_at_k": sum(sizes) / 2})
    sns.scatterplot(
        means.reset_index(),
        x="id_gain",
        y="ood_gain",
        size="pass_at_k",
        sizes=AREAS_PT2,
        size_norm=sizes,
        linewidth=0.4,
        zorder=3,
        legend=False,
        ax=axes,
        **style,
    )
    axes.scatter(0, 0, s=30, color="black", marker=method("pi_0").marker, lw=0, zorder=3)
    deviations = runs.groupby("variant")[["id_gain", "ood_gain"]].std().fillna(0.0)
    labels = [
        LabelledPoint(
            row.id_gain,
            row.ood_gain,
            method(row.Index).label,
            text_colour(method(row.Index).colour),
            float(np.sqrt(np.interp(row.pass_at_k, sizes, AREAS_PT2) / np.pi)),
            tuple(deviations.loc[row.Index]),
        )
        for row in means.itertuples()
    ]
    labels.append(LabelledPoint(0, 0, method("pi_0").label, "black", 3.0))
    _limits(axes, labels, whiskers_fit)
    return labels


def _limits(axes: Axes, points: Sequence[LabelledPoint], whiskers_fit: bool) -> None:
    """Room for labels, and for whiskers if they are to fit, around every point and the origin."""
    for at, set_limits in enumerate((axes.set_xlim, axes.set_ylim)):
        values = [((p.x, p.y)[at], p.spread[at] * whiskers_fit) for p in points]
        low, high = min(v - spread for v, spread in values), max(v + spread for v, spread in values)
        room = 0.14 * max(high - low, 1.0)
        set_limits(low - room, high + room)


def marker_size_range(pass_at_k: Sequence[float]) -> tuple[float, float]:
    """Ends of the frontier figure's scale of marker sizes, in percent of pass@k.

    At least ten points apart, lest noise look like much.
    """
    low, high = (min(pass_at_k), max(pass_at_k)) if len(pass_at_k) else (0.0, 0.0)
    span = max(high - low, 10.0)
    start = min(max((low + high - span) / 2, 0.0), 100.0 - span)
    return start, start + span


def _legend(figure: Figure, sizes: tuple[float, float], title: str) -> None:
    shown = (sizes[0], sum(sizes) / 2, sizes[1])
    areas = np.interp(shown, sizes, AREAS_PT2)
    handles = [figure.axes[0].scatter([], [], s=area, color="0.5", lw=0) for area in areas]
    labels = [f"{value:.0f}%" for value in shown]
    compact = {"handlelength": None, "handletextpad": 0.2, "columnspacing": 1.2}
    legend_below(figure, handles, labels, title=title, title_fontsize=7, **compact)
