"""How every method trains: accuracy of its rollouts, drift, and overlap with the teacher."""

import math
from collections.abc import Sequence

import pandas as pd
from matplotlib.figure import Figure

from geosd.reporting import figures
from geosd.reporting.figures import figure_handles
from geosd.reporting.method_style import ordered_methods
from geosd.scores.statistics import independent_statistics

ROLLOUTS = "rollout/accuracy"
PANELS = {
    ROLLOUTS: ("share of correct rollouts", 1.0),
    "drift/pi_0": ("distance from π₀ (rad)", math.pi),
    "overlap": ("overlap with the teacher", 1.0),
}
"""Quantities from left to right, what their axes say, and the upper ends of their scales from 0."""
WITHOUT_ROLLOUTS = ("sft",)
"""Methods whose batches are verified solutions: the log's accuracy is theirs, before the end."""
MARKER_DISTANCE = 0.2
"""Between the markers of one line, as a share of the panel's diagonal; lines begin in turn."""


def _student_curves(runs: pd.DataFrame) -> pd.DataFrame:
    """Rows that measure the student: accuracies of solutions that SFT trains on are dropped."""
    of_solutions = (
        runs["variant"].isin(WITHOUT_ROLLOUTS)
        & (runs["quantity"] == ROLLOUTS)
        & (runs["step"] < runs.groupby(["model", "variant", "seed"])["step"].transform("max"))
    )
    return runs[~of_solutions]


@figures.themed
def plot(training_curves: pd.DataFrame, models: Sequence[str], methods: Sequence[str]) -> Figure:
    """Plot `figure_training`: a row a model, a panel a quantity, a line a method."""
    runs = _student_curves(training_curves[training_curves["variant"].isin(methods)])
    figure = Figure(figsize=(figures.PAGE_IN, 0.3 + 1.45 * len(models)), layout="constrained")
    shared = {"squeeze": False, "sharex": True, "sharey": "col"}
    grid = figure.subplots(len(models), len(PANELS), **shared)
    names = ordered_methods(runs["variant"])
    for model, row in zip(models, grid, strict=True):
        for axes, (quantity, (label, most)) in zip(row, PANELS.items(), strict=True):
            panel = runs[(runs["model"] == model) & (runs["quantity"] == quantity)]
            values = independent_statistics(panel, "value")
            figures.figure_lines(axes, values, "step", "value", names, (0.0, most))
            for number, line in enumerate(axes.get_lines()):
                if len(line.get_xdata()) > 1:
                    line.set_markevery((number / len(names) * MARKER_DISTANCE, MARKER_DISTANCE))
                elif line.get_marker() == "None":
                    line.set_marker(".")  # a single point of a grey line
            axes.set(xlabel="updates" if model == models[-1] else "", ylabel=label)
            axes.margins(x=0.02)
        row[0].set_title(model)
    figures.figure_legend_below(figure, figure_handles(names))
    return figure
