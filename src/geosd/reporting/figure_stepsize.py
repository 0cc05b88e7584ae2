"""Learning rate and stopping step: the paper's Figure stepsize, and maps of both."""

from collections.abc import Mapping, Sequence

import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from geosd.reporting import figures
from geosd.reporting.id_ood_plane import base_point, method_label, plane_paths, plane_whiskers
from geosd.reporting.label_placement import LabelledPoint, place_labels
from geosd.reporting.method_style import hue_by_method, method, ordered, style_by_method
from geosd.reporting.method_tables import accuracy_name
from geosd.reporting.run_accuracies import base_accuracies, sweep_accuracies
from geosd.reporting.specs import OutputSpec, SweepPoints
from geosd.scores.score_table import ID, OOD_AVERAGE
from geosd.scores.statistics import student_interval

SPEC = OutputSpec(
    title="learning rates and stopping steps",
    caption="""Left: each point is one configuration. Solid lines sweep the learning rate (labels at
    the points), dashed lines follow one learning rate from the base model over runs of growing
    length (open points), which are the same run stopped early. Whiskers of the full runs are 95 %
    confidence intervals (Student's t over runs); grey lines mark the base model. Right: the same
    runs by learning rate and step: the colour is the change from the base model in points, and
    rates that were not stopped at a step are empty. Means over seeds.""",
    reads=("scores",),
    settings=("models", "points"),
    swept=("learning_rate", "steps"),
    paper="Figure stepsize",
    compares=("pi_0",),
    needs=("benchmarks", "sweep"),
)

DASHES = (0, (3, 1.5))
SHADES = "cividis"
"""From losses, dark, to gains: made for colour blindness, and it grows lighter all the way."""
LEVEL_STEPS = 5
"""So many steps have room side by side; the labels of more stand upright."""


def stepsize_figure_points(runs: pd.DataFrame) -> pd.DataFrame:
    """Means over the runs of each rate and length, in order."""
    keys = ["run", "variant", "learning_rate", "steps"]
    if runs.empty:
        return pd.DataFrame(columns=[*keys, ID, OOD_AVERAGE])
    return runs.groupby(keys, sort=False)[[ID, OOD_AVERAGE]].mean().reset_index()


def learning_rate_lines(configurations: pd.DataFrame) -> pd.DataFrame:
    """The full runs of each variant by learning rate."""
    full = configurations.groupby("variant")["steps"].transform("max")
    return configurations[configurations["steps"] == full].sort_values("learning_rate")


def early_stop_lines(configurations: pd.DataFrame) -> pd.DataFrame:
    """Runs of a learning rate that were stopped early, by length."""
    lengths = configurations.groupby(["variant", "learning_rate"])["steps"].transform("size")
    return configurations[lengths > 1].sort_values("steps")


@figures.themed
def plot(scores: pd.DataFrame, models: Sequence[str], points: SweepPoints) -> Figure:
    """Plot `figure_stepsize`: the ID-OOD plane, and maps by variant of runs stopped early."""
    benchmarks = (ID, OOD_AVERAGE)
    base = {model: base_accuracies(scores, model, benchmarks).mean() for model in models}
    runs = {model: sweep_accuracies(scores, model, points[model], benchmarks) for model in models}
    variants = ordered(name for of_model in runs.values() for name in of_model["variant"])
    stopped = any(len(early_stop_lines(stepsize_figure_points(r))) for r in runs.values())
    figure, planes, maps = _panels(models, variants if stopped else [])
    labels = {model: _plane(axes, runs[model], base[model]) for model, axes in planes.items()}
    for model, axes in planes.items():
        axes.set(
            title=model,
            xlabel=f"ID {accuracy_name(scores)} (%)",
            ylabel=f"OOD {accuracy_name(scores)} (%)",
        )
        if maps[model]:
            _maps(figure, maps[model], stepsize_figure_points(runs[model]), base[model])
    _legend(figure, variants, stopped)
    for model, axes in planes.items():
        place_labels(axes, labels[model], size=6, lines=_drawn_lines(axes))
    return figure


def _panels(
    models: Sequence[str], variants: Sequence[str]
) -> tuple[Figure, dict[str, Axes], dict[str, dict[tuple[str, str], Axes]]]:
    """The figure; each model's plane; and its maps by variant and benchmark."""
    width = figures.PAGE_IN if variants else figures.COLUMN_IN
    figure = Figure(figsize=(width, 3.2 * len(models)), layout="constrained")
    grid = figure.add_gridspec(
        2 * len(models), 1 + len(variants), width_ratios=[2, *(1 for _ in variants)]
    )
    planes, maps = {}, {}
    for row, model in enumerate(models):
        planes[model] = figure.add_subplot(grid[2 * row : 2 * row + 2, 0])
        maps[model] = {
            (variant, benchmark): figure.add_subplot(grid[2 * row + below, 1 + column])
            for column, variant in enumerate(variants)
            for below, benchmark in enumerate((ID, OOD_AVERAGE))
        }
    return figure, planes, maps


def _maps(
    figure: Figure,
    panels: Mapping[tuple[str, str], Axes],
    configurations: pd.DataFrame,
    base: pd.Series,
) -> None:
    """Draw the maps of a model, on one scale of colours from the least change to the largest."""
    maps = {}
    for variant, benchmark in panels:
        own = configurations[configurations["variant"] == variant]
        table = own.pivot(index="learning_rate", columns="steps", values=benchmark)
        maps[variant, benchmark] = table.sort_index(ascending=False) - base[benchmark]
    low = min(0.0, *(table.min(axis=None) for table in maps.values()))
    high = max(0.0, *(table.max(axis=None) for table in maps.values()))
    for (variant, benchmark), axes in panels.items():
        table = maps[variant, benchmark]
        sns.heatmap(
            table,
            ax=axes,
            cmap=SHADES,
            vmin=low,
            vmax=high,
            cbar=False,
            linewidths=0.3,
            xticklabels=True,
            yticklabels=[figures.power_of_ten(rate) for rate in table.index],
        )
        axes.tick_params(length=0, labelsize=figures.SMALLEST_PT)
        axes.tick_params(axis="y", labelrotation=0)
        axes.tick_params(axis="x", labelrotation=90 if table.shape[1] > LEVEL_STEPS else 0)
        axes.set(
            xlabel="step" if benchmark == OOD_AVERAGE else "",
            ylabel="learning rate" if axes.get_subplotspec().colspan.start == 1 else "",
        )
        axes.set_title(f"{method(variant).drawn}, {'ID' if benchmark == ID else 'OOD'}", size=7)
    meshes = [axes.collections[0] for axes in panels.values()]
    bar = figure.colorbar(meshes[0], ax=list(panels.values()), aspect=35, pad=0.02)
    bar.set_label(r"change from $\pi_0$ (points)")
    bar.outline.set_visible(False)


def _plane(axes: Axes, runs: pd.DataFrame, base: pd.Series) -> list[LabelledPoint]:
    """Draw the sweeps of a model on the ID-OOD plane; return what is to be labelled."""
    axes.axhline(base[OOD_AVERAGE], color="0.7", lw=0.6, zorder=0)
    axes.axvline(base[ID], color="0.7", lw=0.6, zorder=0)
    means = stepsize_figure_points(runs)
    full, stopped = learning_rate_lines(means), early_stop_lines(means)
    early = stopped[~stopped["run"].isin(full["run"])]
    if len(stopped):
        # Dashed lines begin at the base model.
        first = stopped.drop_duplicates(["variant", "learning_rate"]).assign(steps=0, **base)
        dashed = pd.concat([first, stopped]).sort_values("steps", kind="stable")
        look = hue_by_method(dashed["variant"])
        plane_paths(axes, dashed, units="learning_rate", ls=DASHES, lw=0.7, zorder=2, **look)
    look = hue_by_method(full["variant"])
    plane_paths(axes, full, units="variant", lw=1.4, zorder=2.5, **look)
    of_full = runs[runs["run"].isin(full["run"])]
    plane_whiskers(axes, of_full, "run", student_interval, alpha=0.35)
    style = style_by_method(means["variant"])
    plane = {"x": ID, "y": OOD_AVERAGE, "legend": False, "ax": axes, "zorder": 3}
    sns.scatterplot(full, s=16, linewidth=0.4, **plane, **style)
    if len(early):
        sns.scatterplot(early, s=7, linewidth=0.7, **plane, **style)
        open_points = axes.collections[-1]
        open_points.set_edgecolor(open_points.get_facecolor())
        open_points.set_facecolor("white")
    at_base = base_point(axes, base, size=5, zorder=4)
    axes.margins(0.1)
    axes.set_xlim(axes.get_xlim())
    axes.set_ylim(axes.get_ylim())
    return [
        *(
            method_label(
                row.variant, row.id, row.ood_avg, 2.2, text=figures.power_of_ten(row.learning_rate)
            )
            for row in full.itertuples()
        ),
        at_base,
    ]


def _drawn_lines(axes: Axes) -> list[list[tuple[float, float]]]:
    """Corners of all lines of a panel, its first two from edge to edge."""
    (left, right), (low, high) = axes.get_xlim(), axes.get_ylim()
    visible = [line for line in axes.lines if line.get_linestyle() != "None"]
    across, up, *others = (list(zip(*line.get_data(), strict=True)) for line in visible)
    through = [[(left, across[0][1]), (right, across[0][1])], [(up[0][0], low), (up[0][0], high)]]
    return through + others


def _legend(figure: Figure, variants: Sequence[str], stopped: bool) -> None:
    handles = {
        m.drawn: Line2D([], [], color=m.colour, marker=m.marker, ms=4, lw=1.4)
        for m in map(method, variants)
    }
    handles["learning rate"] = Line2D([], [], color="0.3", lw=1.4)
    if stopped:
        handles["stopped early"] = Line2D([], [], color="0.3", lw=0.9, ls=DASHES)
    figures.legend_below(figure, handles, handlelength=1.8)
