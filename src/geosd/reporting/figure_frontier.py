"""ID gain against OOD gain of every method (the paper's Figure frontier)."""

import math
from collections.abc import Sequence

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from geosd.claims.published import published_family, published_number
from geosd.reporting import figures
from geosd.reporting.id_ood_plane import draw_plane, plane_frame, plane_mean_point
from geosd.reporting.method_style import BACKGROUND, EMPHASIZED, method_style, ordered_methods
from geosd.reporting.run_accuracies import sweep_run_gains
from geosd.scores.score_table import ID, OOD_AVERAGE
from geosd.scores.statistics import independent_statistics

NAMED = [name for name in EMPHASIZED if name != "pi_0"]
ACROSS = 3
"""Models side by side."""


def _published_gains(model: str) -> pd.DataFrame:
    """The paper's gains of the family that a model stands for: `variant`, `id`, `ood_avg`."""
    family = published_family(model)
    rows = []
    for name in NAMED:
        gains = [_published_gain(family, name, benchmark) for benchmark in (ID, OOD_AVERAGE)]
        if None not in gains:
            rows.append((name, *gains))
    return pd.DataFrame(rows, columns=["variant", ID, OOD_AVERAGE])


def _published_gain(family: str | None, variant: str, benchmark: str) -> float | None:
    own = published_number(family, variant, benchmark)
    base = published_number(family, "pi_0", benchmark)
    if own is None or base is None:
        return None
    return own.mean - base.mean


@figures.themed
def plot(scores: pd.DataFrame, models: Sequence[str], methods: Sequence[str]) -> Figure:
    """Plot `figure_frontier`: OOD gain against ID gain of every method, and the paper's."""
    points = [{"run": name, "variant": name} for name in ordered_methods(methods) if name != "pi_0"]
    gains, published = {}, {}
    for model in models:
        of_runs = sweep_run_gains(scores, model, points)
        gains[model] = independent_statistics(of_runs, ID, OOD_AVERAGE)
        published[model] = _published_gains(model)
    low, high = plane_frame(pd.concat([*gains.values(), *published.values()]), math.inf)
    down = math.ceil(len(models) / ACROSS)
    across = min(ACROSS, len(models))
    figure = figures.figure_of(models, 0.5 + 1.85 * down)
    grid = figure.subplots(down, across, squeeze=False, sharex=True, sharey=True)
    for model, axes in zip(models, grid.flat, strict=False):
        draw_plane(axes, low, high)
        _points(axes, gains[model], published[model])
        axes.set(title=model, xlabel="ID gain over π₀ (points)")
        if axes in grid[:, 0]:
            axes.set_ylabel("OOD gain over π₀ (points)")
    for axes in grid.flat[len(models) :]:
        axes.remove()
    grid[0, 0].text(0, high[1], " gains on both", color="#2F6B2F", va="top")
    shown = set().union(*(table["variant"] for table in gains.values()))
    paper_shown = any(len(table) for table in published.values())
    figures.figure_legend_below(figure, _handles(shown, paper_shown))
    return figure


def _points(axes: Axes, gains: pd.DataFrame, published: pd.DataFrame) -> None:
    """Mark the means of all methods, those of the paper's text in colour, and the paper's."""
    for name, of_method in gains.groupby("variant", sort=False):
        look = {} if name in NAMED else {"color": BACKGROUND, "zorder": 2}
        plane_mean_point(axes, of_method[ID], of_method[OOD_AVERAGE], method_style(name), **look)
    means = gains.groupby("variant")[[ID, OOD_AVERAGE]].mean()
    for name, *there in published.itertuples(index=False):
        look = method_style(name)
        if name in means.index:
            arrow = {
                "arrowstyle": "->",
                "color": look.colour,
                "lw": 0.6,
                "alpha": 0.6,
                "shrinkA": 4,
                "shrinkB": 4,
                "mutation_scale": 6,
            }
            axes.annotate("", means.loc[name], there, arrowprops=arrow, zorder=1.5)
        open_point = {"mfc": "white", "mec": look.colour, "mew": 1.1, "ms": 5.5, "zorder": 2.5}
        axes.plot(*there, marker=look.marker, ls="", **open_point)


def _handles(variants: set[str], paper_shown: bool) -> dict[str, Line2D]:
    point = {"ls": "", "ms": 5}
    handles = {}
    for name in ordered_methods(variants):
        if name in NAMED:
            look = method_style(name)
            handles[look.label] = Line2D([], [], color=look.colour, marker=look.marker, **point)
    if variants - set(NAMED):
        handles["other methods"] = Line2D([], [], color=BACKGROUND, marker="o", **point)
    if paper_shown:
        handles["the paper's"] = Line2D([], [], mec="0.3", mfc="white", marker="o", **point)
    return handles
