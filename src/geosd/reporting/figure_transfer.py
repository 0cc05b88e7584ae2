"""Gains of every method over the dial from transfer to conflict (docs/transfer.md)."""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd
from matplotlib.figure import Figure

from geosd.reporting.figures import (
    COLUMN_IN,
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
    """Plot `figure_transfer`: OOD gains above, ID gains below, a column for each choice of rates.

    `gains` has a table for each choice, with `setting`, `variant` and a column for each benchmark.
    """
    width = COLUMN_IN if len(gains) == 1 else PAGE_IN
    figure = Figure(figsize=(width, 4.4), layout="constrained")
    panels = figure.subplots(2, len(gains), squeeze=False, sharex=True, sharey="row")
    variants = ordered(name for runs in gains.values() for name in runs["variant"])
    for column, (choice, runs) in zip(panels.T, gains.items(), strict=True):
        column[0].set_title(choice)
        for axes, (benchmark, label) in zip(column, LABELS.items(), strict=True):
            axes.axhline(0, color="0.55", lw=0.6, zorder=0)
            method_lines(axes, runs, "setting", benchmark, variants, student_interval)
            axes.set(xlabel="", ylabel=label if column[0] is panels[0, 0] else "")
        column[1].set_xticks(sorted(runs["setting"].unique()))
        column[1].set_xlabel("conflict between ID and OOD problems")
    handles = method_handles(variants)
    legend_below(figure, handles, ncols=3 if len(gains) == 1 else len(handles))
    return figure
