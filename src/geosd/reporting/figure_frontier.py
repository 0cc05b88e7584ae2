"""ID gain against OOD gain of every method (the paper's Figure frontier)."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from geosd.reporting.figures import COLUMN_IN, PAGE_IN, themed
from geosd.reporting.id_ood_plane import label_planes, method_label, plane_whiskers
from geosd.reporting.label_placement import LabelledPoint
from geosd.reporting.method_style import method, ordered, style_by_method
from geosd.reporting.run_accuracies import BENCHMARKS, base_accuracies, sweep_accuracies
from geosd.reporting.specs import OutputSpec
from geosd.scores.score_table import ID, OOD_AVERAGE, scores_by_seed

SPEC = OutputSpec(
    title="the frontier of gains in and out of distribution",
    caption="""Above: each method's gain over the base model out of distribution against its gain in
    distribution; the lines through the base model part gains from losses. Where far points squeeze
    the others together, a second row shows the dashed frame alone. Below: pass@k out of
    distribution, with k the number of samples. Means over seeds; whiskers are standard
    deviations.""",
    reads=("scores",),
    settings=("models", "methods"),
    paper="Figure frontier",
    compares=("pi_0",),
    besides=("pi_0",),
    needs=("benchmarks",),
)

GAINS = ["id_gain", "ood_gain"]
CROWDED = 0.25
"""Points nearer to the origin than this share of the farthest one's distance stand in a crowd."""
CROWD = 4
"""So many points in a crowd have a panel of their own."""
ENLARGED = 0.7
"""A crowd has no panel of its own if that would show more than this share of the whole one."""
ROOM = 0.14
"""Share of a panel's points and whiskers that is left free around them, for labels."""
RADIUS_PT = 2.6
"""Of the markers."""


def frontier_figure_points(
    scores: pd.DataFrame, model: str, methods: Sequence[str]
) -> pd.DataFrame:
    """ID and OOD gain of every run over the base model's mean, in percentage points.

    A row a run: `variant`, in the paper's order, `seed`, `id_gain`, `ood_gain`; pi_0 is the origin,
    and a ValueError without it.
    """
    base = base_accuracies(scores, model, BENCHMARKS).mean()
    points = [{"run": name, "variant": name} for name in methods if name != "pi_0"]
    runs = sweep_accuracies(scores, model, points, BENCHMARKS)
    gained = {"id_gain": runs[ID] - base[ID], "ood_gain": runs[OOD_AVERAGE] - base[OOD_AVERAGE]}
    return runs.assign(**gained)[["variant", "seed", *GAINS]]


def mean_frontier_points(runs: pd.DataFrame) -> pd.DataFrame:
    """Means of `frontier_figure_points` over the runs of each variant, indexed by it."""
    return runs.groupby("variant", sort=False)[GAINS].mean()


def crowded_variants(means: pd.DataFrame) -> list[str]:
    """Variants crowded around the origin; empty if fewer than `CROWD`."""
    distance = means[GAINS].abs().max(axis=1)
    near = list(means.index[distance <= CROWDED * distance.max()])
    return near if len(near) >= CROWD else []


def enlarged_variants(means: pd.DataFrame, deviations: pd.DataFrame) -> list[str]:
    """Variants of the enlarged panel: a crowd, and all among its whiskers, in the order of `means`.

    `deviations` are half lengths of the whiskers. Empty without a crowd, or if little were
    enlarged.
    """
    chosen: list[str] = []
    grown = crowded_variants(means)
    while grown != chosen:
        chosen = grown
        low, high = frontier_limits(means.loc[chosen], deviations.loc[chosen])
        grown = list(means.index[((means[GAINS] >= low) & (means[GAINS] <= high)).all(axis=1)])
    if not chosen:
        return []
    whole_low, whole_high = frontier_limits(means, deviations)
    return chosen if ((high - low) <= ENLARGED * (whole_high - whole_low)).all() else []


def frontier_limits(means: pd.DataFrame, deviations: pd.DataFrame) -> tuple[pd.Series, pd.Series]:
    """Lower and upper limits of the axes: all whiskers, the origin, and room for labels."""
    low = (means[GAINS] - deviations[GAINS]).min().clip(upper=0.0)
    high = (means[GAINS] + deviations[GAINS]).max().clip(lower=0.0)
    room = ROOM * (high - low).clip(lower=1.0)
    return low - room, high + room


def pass_at_k_runs(scores: pd.DataFrame, model: str, methods: Sequence[str]) -> pd.DataFrame:
    """OOD `pass_at_k` in percent at the largest k: a row a run, by `variant` and `seed`."""
    runs = {name: scores_by_seed(scores, model, name, OOD_AVERAGE, "pass@k") for name in methods}
    table = pd.concat(runs, names=["variant", "seed"]).rename("pass_at_k").reset_index()
    return table.astype({"pass_at_k": float})


@themed
def plot(scores: pd.DataFrame, models: Sequence[str], methods: Sequence[str]) -> Figure:
    """Plot `figure_frontier`: OOD gain against ID gain of every method, and its OOD pass@k."""
    planes = {model: frontier_figure_points(scores, model, methods) for model in models}
    enlarged = {
        model: enlarged_variants(mean_frontier_points(runs), _deviations(runs))
        for model, runs in planes.items()
    }
    names = ordered(name for name in methods if name in set(scores["variant"]))
    covered = {model: pass_at_k_runs(scores, model, names) for model in models}
    heights = {"whole": 2.2, "enlarged": 2.2, "pass@k": 0.55 + 0.11 * len(names)}
    if not any(enlarged.values()):
        del heights["enlarged"]
    if all(runs.empty for runs in covered.values()):
        del heights["pass@k"]
    figure, grid = _grid(models, heights)
    labels: dict[Axes, list[LabelledPoint]] = {}
    for model, panels in grid.items():
        panels["whole"].set_title(model)
        labels[panels["whole"]] = _plane(panels["whole"], planes[model])
        if "enlarged" in panels:
            labels |= _enlarge(panels["whole"], panels["enlarged"], planes[model], enlarged[model])
            elsewhere = {point.text for point in labels.get(panels["enlarged"], [])}
            labels[panels["whole"]] = [
                replace(point, text="") if point.text in elsewhere else point
                for point in labels[panels["whole"]]
            ]
    first = [grid[model] for model in list(models)[::3]]
    for axes in labels:
        axes.set_xlabel(r"ID gain over $\pi_0$ (points)")
        left = any(axes in panels.values() for panels in first)
        axes.set_ylabel(r"OOD gain over $\pi_0$ (points)" if left else "")
    if "pass@k" in heights:
        k = int(scores.loc[scores["metric"] == "pass@k", "k"].max())
        _coverage([panels["pass@k"] for panels in grid.values()], list(covered.values()), names, k)
    label_planes(figure, labels, size=7, bold=[method("geosd").label])
    return figure


def _deviations(runs: pd.DataFrame) -> pd.DataFrame:
    """Standard deviations over the runs of each variant; 0 for a single run."""
    return runs.groupby("variant", sort=False)[GAINS].std().fillna(0.0)


def _grid(
    models: Sequence[str], heights: Mapping[str, float]
) -> tuple[Figure, dict[str, dict[str, Axes]]]:
    """The figure, and the panels of each model by the name of their row."""
    columns = min(len(models), 3)
    blocks = math.ceil(len(models) / columns)
    size = (COLUMN_IN if len(models) == 1 else PAGE_IN, blocks * math.fsum(heights.values()))
    figure = Figure(figsize=size, layout="constrained")
    ratios = [*heights.values()] * blocks
    grid = figure.subplots(len(ratios), columns, squeeze=False, height_ratios=ratios)
    panels = {
        model: dict(
            zip(heights, grid[number // columns * len(heights) :, number % columns], strict=False)
        )
        for number, model in enumerate(models)
    }
    used = {axes for of_model in panels.values() for axes in of_model.values()}
    for axes in grid.flat:
        if axes not in used:
            axes.remove()
    return figure, panels


def _plane(axes: Axes, runs: pd.DataFrame) -> list[LabelledPoint]:
    """Draw means and deviations of gains, with room for all whiskers; return the labels."""
    axes.axhline(0, color="0.55", lw=0.6, zorder=0)
    axes.axvline(0, color="0.55", lw=0.6, zorder=0)
    style = style_by_method(runs["variant"])
    plane_whiskers(axes, runs, "variant", "sd", alpha=0.7, width=0.7, zorder=2, plane=GAINS)
    means, deviations = mean_frontier_points(runs), _deviations(runs)
    points = {"x": GAINS[0], "y": GAINS[1], "s": (2 * RADIUS_PT) ** 2, "linewidth": 0.4}
    sns.scatterplot(means.reset_index(), zorder=3, legend=False, ax=axes, **points, **style)
    axes.scatter(0, 0, s=30, color="black", marker=method("pi_0").marker, lw=0, zorder=3.5)
    low, high = frontier_limits(means, deviations)
    axes.set(xlim=(low[GAINS[0]], high[GAINS[0]]), ylim=(low[GAINS[1]], high[GAINS[1]]))
    named = [
        method_label(name, *gains, RADIUS_PT, spread=tuple(deviations.loc[name]))
        for name, gains in means.iterrows()
    ]
    return [*named, LabelledPoint(0, 0, method("pi_0").drawn, "black", 3.0)]


def _enlarge(
    whole: Axes, part: Axes, runs: pd.DataFrame, variants: Sequence[str]
) -> dict[Axes, list[LabelledPoint]]:
    """Draw a crowd in a panel of its own, and its frame in the whole one; return its labels."""
    if not variants:
        part.remove()
        return {}
    named = _plane(part, runs[runs["variant"].isin(variants)])
    (left, right), (low, high) = part.get_xlim(), part.get_ylim()
    frame = {"fill": False, "ls": "--", "lw": 0.6, "ec": "0.4", "zorder": 4}
    whole.add_patch(Rectangle((left, low), right - left, high - low, **frame))
    return {part: named}


def _coverage(
    panels: Sequence[Axes], tables: Sequence[pd.DataFrame], names: Sequence[str], k: int
) -> None:
    """Draw OOD pass@k of every method on one scale for all models, a line a method."""
    style = style_by_method(names)
    for number, (axes, runs) in enumerate(zip(panels, tables, strict=True)):
        sns.pointplot(
            runs,
            x="pass_at_k",
            y="variant",
            order=names,
            hue="variant",
            hue_order=names,
            palette=style["palette"],
            markers=[style["markers"][name] for name in names],
            linestyle="none",
            errorbar="sd",
            markersize=4,
            markeredgewidth=0,
            err_kws={"linewidth": 0.8},
            legend=False,
            ax=axes,
        )
        axes.grid(axis="y", lw=0.4, color="0.88")
        axes.tick_params(axis="y", length=0)
        shown = [method(name).drawn for name in names] if number % 3 == 0 else []
        axes.set_yticks(range(len(names)), shown or [""] * len(names))
        for tick, name in zip(axes.get_yticklabels(), names, strict=True):
            tick.set_fontweight("bold" if name == "geosd" else "normal")
        axes.set(xlabel=f"OOD pass@{k} (%)", ylabel="")
    low = min(axes.get_xlim()[0] for axes in panels)
    high = max(axes.get_xlim()[1] for axes in panels)
    for axes in panels:
        axes.set_xlim(low, high)
