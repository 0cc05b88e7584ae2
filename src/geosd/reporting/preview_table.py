"""The main table of a study that is under way: what is there, and what missing seeds may change."""

import math
from collections.abc import Sequence

import pandas as pd

from geosd.reporting.method_style import method, ordered
from geosd.reporting.sentences import accuracy_name
from geosd.reporting.tables import Cell, Column, Row, Table
from geosd.scores.score_table import ID, OOD_AVERAGE, scores_by_seed
from geosd.scores.statistics import Group, contrast, final_contrast


def preview_table(
    scores: pd.DataFrame, models: Sequence[str], methods: Sequence[str], seeds: int
) -> Table:
    """The table `preview`: a row for each model and method of which runs are there.

    Next to each mean stand half of Student's 95 % interval and half of the 95 % predictive interval
    of the mean of all `seeds`. Δ OOD is the difference of means from pi_0, as in `table_main`.
    """
    columns = [Column("n", "seeds")]
    for label in ("ID", "OOD avg.", "Δ OOD"):
        columns += [Column(label, label), Column(f"{label}.final", "final")]
    rows = []
    for model in models:
        for variant in ordered(methods):
            there = len(scores_by_seed(scores, model, variant, ID))
            if there:
                cells = (Cell(f"{there} of {seeds}"), *_cells(scores, model, variant, seeds))
                rows.append(Row(method(variant).label, model, cells))
    note = (
        f"PREVIEW: {accuracy_name(scores)} in percent, mean ± half of Student's 95 % interval over"
        f" the runs that are there. Final: how far from it the mean of all {seeds} seeds may lie,"
        " with 95 % probability for normal runs. Δ OOD: change of the OOD average from π₀. No"
        " verdict: who looks often, and stops when it suits, errs more often than 5 %."
    )
    return Table("preview", "Accuracy so far", note, "Method", tuple(columns), tuple(rows))


def open_signs(
    scores: pd.DataFrame, models: Sequence[str], methods: Sequence[str], seeds: int
) -> list[str]:
    """The methods, as `model/method`, whose Δ OOD may still have either sign with all seeds."""
    found = []
    for model in models:
        for variant in ordered(methods):
            groups = [] if variant == "pi_0" else _change(scores, model, variant)
            if groups and _sign_is_open(groups, seeds):
                found.append(f"{model}/{method(variant).label}")
    return found


def _sign_is_open(groups: Sequence[Group], seeds: int) -> bool:
    final = final_contrast(groups, seeds)
    return not (final.low > 0 or final.high < 0)  # a single run has no interval: NaN, so open


def _cells(scores: pd.DataFrame, model: str, variant: str, seeds: int) -> list[Cell]:
    cells = []
    for benchmark in (ID, OOD_AVERAGE):
        accuracies = Group.of(scores_by_seed(scores, model, variant, benchmark))
        cells += _mean_and_final([accuracies], seeds, ".1f")
    change = [] if variant == "pi_0" else _change(scores, model, variant)
    return cells + _mean_and_final(change, seeds, "+.1f")


def _mean_and_final(groups: Sequence[Group], seeds: int, form: str) -> list[Cell]:
    """The contrast of groups with its interval, and the interval of that of all seeds."""
    if not groups:
        return [Cell(None), Cell(None)]
    seen = contrast(groups)
    final = final_contrast(groups, seeds)
    half = final.high - final.difference
    return [
        Cell(seen.difference, seen.high - seen.difference, form),
        Cell(None if math.isnan(half) else f"±{half:.1f}"),
    ]


def _change(scores: pd.DataFrame, model: str, variant: str) -> list[Group]:
    """The groups whose means add up to the OOD average's change from pi_0; empty without both."""
    own = scores_by_seed(scores, model, variant, OOD_AVERAGE)
    base = scores_by_seed(scores, model, "pi_0", OOD_AVERAGE)
    if own.empty or base.empty:
        return []
    return [Group.of(own), Group.of(-base)]
