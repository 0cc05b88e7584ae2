"""The student's mass on the teacher's ranks over checkpoints (the paper's Figure alignment)."""

from collections.abc import Mapping, Sequence

import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from geosd.reporting.figures import PAGE_IN, SMALLEST_PT, signed_in_figure, themed
from geosd.reporting.method_style import method_style, method_style_rate
from geosd.scores.tidy import select_tidy_rows

RANKING = "pi_0"
"""Who ranked the tokens that are shown; the table has the live teacher's ranks, too."""


def figure_alignment_masses(alignment: pd.DataFrame, model: str, variant: str) -> pd.DataFrame:
    """Mass on each of the teacher's ranks (columns) by checkpoint (index `step`), means over seeds.

    Raises:
        ValueError: The runs of the variant have no such rows, or not the same checkpoints.
    """
    rows = select_tidy_rows(alignment, model=model, variant=variant, ranking=RANKING)
    runs = rows.groupby(["step", "rank"])["mass"].agg(["mean", "size"])
    if runs.empty or runs["size"].nunique() != 1:
        seen = sorted(rows["seed"].unique())
        raise ValueError(
            f"alignment of {variant} on {model}, tokens ranked by {RANKING}: seeds {seen} have"
            f" {'no rows' if runs.empty else 'unlike checkpoints'}.\nHint: let the workflow run"
            " `alignment` again for all seeds of the study."
        )
    return runs["mean"].unstack("rank")


@themed
def plot(
    alignment: pd.DataFrame,
    models: Sequence[str],
    methods: Sequence[str],
    learning_rates: Mapping[str, Mapping[str, float]],
) -> Figure:
    """Plot `figure_alignment`: a row per model, a map per method, a line per checkpoint."""
    tables = {(m, v): figure_alignment_masses(alignment, m, v) for m in models for v in methods}
    changes = {key: table - table.iloc[0] for key, table in tables.items()}
    most = max(change.abs().max(axis=None) for change in changes.values())
    deepest = max(map(len, tables.values()))
    height = (0.75 + 0.155 * deepest) * len(models)
    figure = Figure(figsize=(PAGE_IN, height), layout="constrained")
    grid = figure.subplots(len(models), len(methods), squeeze=False)
    for row, model in zip(grid, models, strict=True):
        for axes, variant in zip(row, methods, strict=True):
            _map(axes, tables[model, variant], changes[model, variant], most)
            rate = method_style_rate(learning_rates[model][variant])
            axes.set_title(f"{method_style(variant).label} at {rate}, {model}")
            axes.set_ylabel("updates" if axes is row[0] else "")
            below = model == models[-1]
            axes.set_xlabel("rank by the teacher; changes in thousandths" if below else "")
    return figure


def _map(axes: Axes, masses: pd.DataFrame, changes: pd.DataFrame, most: float) -> None:
    """Draw changes as colours and numbers; the first line has the masses of π₀, without colour."""
    words = (1000 * changes).map(lambda change: signed_in_figure(change))
    words.iloc[0] = [f"{mass:.3f}".lstrip("0") for mass in masses.iloc[0]]
    sns.heatmap(
        changes,
        annot=words,
        fmt="",
        annot_kws={"size": SMALLEST_PT},
        cmap="RdBu",
        vmin=-most,
        vmax=most,
        cbar=False,
        linewidths=0.3,
        yticklabels=[f"{step}" if step else method_style("pi_0").label for step in masses.index],
        ax=axes,
    )
    axes.tick_params(length=0)
    axes.tick_params(axis="y", labelrotation=0)
