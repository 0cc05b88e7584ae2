"""OOD accuracy against how much of the solution the teacher sees (the paper's Figure privilege)."""

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from geosd.reporting.figures import COLUMN_IN, PAGE_IN, themed
from geosd.reporting.label_placement import label_line_ends
from geosd.reporting.method_style import style_by_method
from geosd.reporting.run_accuracies import base_accuracies, sweep_accuracies
from geosd.reporting.specs import OutputSpec, SweepPoints
from geosd.scores.score_table import OOD_AVERAGE
from geosd.scores.statistics import student_interval

SPEC = OutputSpec(
    title="accuracy against what the teacher sees",
    caption="""Change of the mean OOD accuracy from the base model against the share of the
    reference solution that the teacher sees during training, mean over seeds with the 95 %
    confidence interval of the difference, taken within each seed.""",
    reads=("scores",),
    settings=("models", "points"),
    swept=("privilege",),
    paper="Figure privilege",
    compares=("pi_0",),
    needs=("benchmarks", "sweep"),
)


def privilege_changes(
    scores: pd.DataFrame, model: str, points: Sequence[Mapping[str, Any]]
) -> pd.DataFrame:
    """OOD change of each run of a model's sweeps from the base model on the same seed, in points.

    A row a run: `variant`, in the paper's order, `seed`, `privilege` in percent of the solution,
    and `change`. Runs without scores and variants of a single point are left out.
    """
    base = base_accuracies(scores, model, [OOD_AVERAGE])[OOD_AVERAGE]
    runs = sweep_accuracies(scores, model, points, [OOD_AVERAGE])
    swept = runs[runs.groupby("variant")["run"].transform("nunique") > 1]
    swept = swept.assign(
        privilege=100 * swept["privilege"].astype(float),
        change=swept[OOD_AVERAGE] - swept["seed"].map(base),
    )
    return swept[["variant", "seed", "privilege", "change"]].dropna()


@themed
def plot(scores: pd.DataFrame, models: Sequence[str], points: SweepPoints) -> Figure:
    """Plot `figure_privilege`: OOD change against the share of the solution that is revealed."""
    sweeps = {model: privilege_changes(scores, model, points[model]) for model in models}
    size = (COLUMN_IN, 2.4) if len(models) == 1 else (PAGE_IN, 2.3)
    figure = Figure(figsize=size, layout="constrained")
    grid = figure.subplots(1, len(models), squeeze=False, sharey=True)[0]
    panels = dict(zip(models, grid, strict=True))
    for model, axes in panels.items():
        axes.set_title(model)
        _panel(axes, sweeps[model], room=0.22 if len(models) == 1 else 0.3)
    panels[models[0]].set_ylabel(r"OOD change from $\pi_0$ (points)")
    for model, axes in panels.items():
        label_line_ends(axes, sweeps[model], "privilege", "change")
    return figure


def _panel(axes: Axes, sweep: pd.DataFrame, room: float) -> None:
    shares = sorted(sweep["privilege"].unique())
    # The base model's line ends with the data, where the labels begin.
    axes.plot([shares[0] - 4, shares[-1]], [0, 0], color="0.55", lw=0.6, zorder=0)
    sns.lineplot(
        sweep,
        x="privilege",
        y="change",
        errorbar=student_interval,
        err_kws={"alpha": 0.15, "lw": 0, "zorder": 1},
        markersize=4,
        markeredgewidth=0.4,
        zorder=2,
        legend=False,
        ax=axes,
        **style_by_method(sweep["variant"], dashed=()),
    )
    axes.set_xticks(shares, [f"{share:g}" for share in shares])
    # The room is for the labels at the lines' ends.
    axes.set_xlim(shares[0] - 4, shares[-1] + room * (shares[-1] - shares[0]))
    axes.set(xlabel="solution revealed to the teacher (%)", ylabel="")
