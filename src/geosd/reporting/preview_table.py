"""The main table of a study that is under way: what is there, and what missing seeds may change."""

import math
from collections.abc import Sequence

import pandas as pd

from geosd.reporting.method_style import method_style, ordered_methods
from geosd.reporting.sentences import accuracy_in_sentence
from geosd.reporting.tables import Table, TableCell, TableColumn, TableRow
from geosd.scores.score_table import ID, OOD_AVERAGE, score_table_replicates, scores_by_seed
from geosd.scores.statistics import (
    GroupStatistics,
    contrast_test,
    final_contrast_test,
    student_effect_interval,
)
from geosd.scores.tidy import select_tidy_rows


def preview_table(
    scores: pd.DataFrame, models: Sequence[str], methods: Sequence[str], seeds: int
) -> Table:
    """The table `preview`: a row for each model and method of which runs are there.

    Next to each mean stand half of Student's 95 % interval and half of the 95 % predictive interval
    of the mean of all `seeds`. Δ OOD is paired by seed: the mean over the runs that are there, each
    minus pi_0 of its seed, with the interval of `student_effect_interval`, as in all tables of
    changes.
    """
    columns = [TableColumn("n", "seeds")]
    for label in ("ID", "OOD avg.", "Δ OOD"):
        columns += [TableColumn(label, label), TableColumn(f"{label}.final", "final")]
    rows = []
    for model in models:
        for variant in ordered_methods(methods):
            there = len(scores_by_seed(scores, model, variant, ID))
            if there:
                cells = (TableCell(f"{there} of {seeds}"), *_cells(scores, model, variant, seeds))
                rows.append(TableRow(method_style(variant).label, model, cells))
    note = (
        f"PREVIEW: {accuracy_in_sentence(scores)} in percent, mean ± half of Student's 95 %"
        " interval over the runs that are there. Final: how far from it the mean of all"
        f" {seeds} seeds may lie, with 95 % probability for normal runs. Δ OOD: change of the OOD"
        " average from π₀, paired by seed. No verdict: who looks often, and stops when it suits,"
        " errs more often than 5 %."
    )
    return Table("preview", "Accuracy so far", note, "Method", tuple(columns), tuple(rows))


def preview_open_signs(
    scores: pd.DataFrame, models: Sequence[str], methods: Sequence[str], seeds: int
) -> list[str]:
    """The methods, as `model/method`, whose Δ OOD may still have either sign with all seeds."""
    found = []
    for model in models:
        for variant in ordered_methods(methods):
            if variant == "pi_0":
                continue
            changes = _changes(scores, model, variant)
            if not changes.empty and _sign_is_open(changes, seeds):
                found.append(f"{model}/{method_style(variant).label}")
    return found


def _sign_is_open(changes: pd.Series, seeds: int) -> bool:
    final = final_contrast_test([GroupStatistics.of(changes)], seeds)
    return not (final.low > 0 or final.high < 0)  # a single run has no interval: NaN, so open


def _cells(scores: pd.DataFrame, model: str, variant: str, seeds: int) -> list[TableCell]:
    cells = []
    for benchmark in (ID, OOD_AVERAGE):
        runs = scores_by_seed(scores, model, variant, benchmark)
        seen = contrast_test([GroupStatistics.of(runs)])
        cells += [
            TableCell(seen.difference, seen.high - seen.difference, ".1f"),
            _final(runs, seeds),
        ]
    changes = _changes(scores, model, variant)
    if variant == "pi_0" or changes.empty:
        return [*cells, TableCell(None), TableCell(None)]
    draws = score_table_replicates(select_tidy_rows(scores, model=model, variant=variant))
    seen = student_effect_interval([(changes, draws.reindex(changes.index))])
    cells += [
        TableCell(seen.difference, seen.high - seen.difference, "+.1f"),
        _final(changes, seeds),
    ]
    return cells


def _final(values: pd.Series, seeds: int) -> TableCell:
    """How far from the mean of runs, one value each, that of all seeds may lie."""
    final = final_contrast_test([GroupStatistics.of(values)], seeds)
    half = final.high - final.difference
    return TableCell(None if math.isnan(half) else f"±{half:.1f}")


def _changes(scores: pd.DataFrame, model: str, variant: str) -> pd.Series:
    """The OOD average of each run minus that of pi_0 with its seed; of no run without pi_0's."""
    own = scores_by_seed(scores, model, variant, OOD_AVERAGE)
    base = scores_by_seed(scores, model, "pi_0", OOD_AVERAGE)
    return (own - base).dropna()
