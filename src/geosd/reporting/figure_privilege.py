"""OOD accuracy against how much of the solution the teacher sees (the paper's Figure privilege)."""

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd
from matplotlib.figure import Figure

from geosd.reporting import figures
from geosd.reporting.method_style import method_labels_with_rates, ordered_methods
from geosd.reporting.run_accuracies import SweepPoints, sweep_run_gains
from geosd.scores.score_table import OOD_AVERAGE
from geosd.scores.statistics import independent_statistics


def figure_privilege_changes(
    scores: pd.DataFrame, model: str, points: Sequence[Mapping[str, Any]]
) -> pd.DataFrame:
    """OOD change of each run of a model's sweeps from the base model on the same seed, in points.

    A row a base model: `variant`, in the paper's order, `unit`, `privilege` in percent of the
    solution, and `change`. Runs without scores and variants of a single point are left out.
    """
    runs = sweep_run_gains(scores, model, points, [OOD_AVERAGE]).rename(
        columns={OOD_AVERAGE: "change"}
    )
    swept = runs[runs.groupby("variant")["run"].transform("nunique") > 1].dropna()
    swept = swept.assign(privilege=100 * swept["privilege"].astype(float))
    return independent_statistics(swept.drop(columns="run"), "change")


@figures.themed
def plot(
    scores: pd.DataFrame,
    models: Sequence[str],
    points: SweepPoints,
    learning_rates: Mapping[str, Mapping[str, float]],
) -> Figure:
    """Plot `figure_privilege`: OOD change against the share of the solution that is revealed."""
    sweeps = {model: figure_privilege_changes(scores, model, points[model]) for model in models}
    figure = figures.figure_of(models, 2.0)
    panels = figure.subplots(1, len(models), squeeze=False, sharey=True)[0]
    for axes, (model, sweep) in zip(panels, sweeps.items(), strict=True):
        shares = sorted(sweep["privilege"].unique())
        # The base model's line ends with the data, where the labels begin.
        axes.plot([shares[0] - 4, shares[-1]], [0, 0], color="0.55", lw=0.6, zorder=0)
        figures.figure_lines(axes, sweep, "privilege", "change", ordered_methods(sweep["variant"]))
        axes.set_xticks(shares, [f"{share:g}" for share in shares])
        axes.set_xlim(left=shares[0] - 4)
        axes.set(title=model, xlabel="solution revealed to the teacher (%)")
    panels[0].set_ylabel("OOD change from π₀ (points)")
    for axes, (model, sweep) in zip(panels, sweeps.items(), strict=True):
        labels = method_labels_with_rates(learning_rates[model])
        figures.label_figure_lines(axes, sweep, "privilege", "change", labels)
    return figure
