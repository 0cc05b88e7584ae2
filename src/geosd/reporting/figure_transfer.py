"""Gains of every method over the dial from transfer to conflict (docs/transfer.md)."""

from collections.abc import Mapping

import pandas as pd
from matplotlib.figure import Figure

from geosd.reporting.figures import (
    PAGE_IN,
    legend_below,
    method_handles,
    method_lines,
    themed,
)
from geosd.reporting.method_style import ordered
from geosd.scores.score_table import ID, OOD_AVERAGE
from geosd.scores.statistics import student_interval

LABELS = {OOD_AVERAGE: "OOD gain (points)", ID: "ID gain (points)"}


@themed
def plot(gains: Mapping[str, pd.DataFrame]) -> Figure:
    """Plot `figure_transfer`: OOD gains left, ID gains right, a row for each choice of rates.

    `gains` has a table for each choice, with `setting`, `variant` and a column for each benchmark.
    """
    figure = Figure(figsize=(PAGE_IN, 0.4 + 2.3 * len(gains)), layout="constrained")
    panels = figure.subplots(len(gains), 2, squeeze=False, sharex=True, sharey="col")
    variants = ordered(name for runs in gains.values() for name in runs["variant"])
    for row, (choice, runs) in zip(panels, gains.items(), strict=True):
        row[0].set_title(choice, loc="left")
        for axes, (benchmark, label) in zip(row, LABELS.items(), strict=True):
            axes.axhline(0, color="0.55", lw=0.6, zorder=0)
            method_lines(axes, runs, "setting", benchmark, variants, student_interval)
            axes.set(xlabel="", ylabel=label)
            axes.set_xticks(sorted(runs["setting"].unique()))
    for axes in panels[-1]:
        axes.set_xlabel("conflict between ID and OOD problems")
    legend_below(figure, method_handles(variants))
    return figure
