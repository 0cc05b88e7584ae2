"""The main table of a study that is under way: what is there, and what missing seeds may change."""

import math
from collections.abc import Sequence

import pandas as pd

from geosd.reporting.method_style import method, ordered
from geosd.reporting.sentences import accuracy_name
from geosd.reporting.tables import Cell, Column, Row, Table
from geosd.scores.score_table import ID, OOD_AVERAGE, replicates_by_seed, scores_by_seed
from geosd.scores.statistics import Group, contrast, effect_interval, final_contrast
from geosd.scores.tidy import select_rows


def preview_table(
    scores: pd.DataFrame, models: Sequence[str], methods: Sequence[str], seeds: int
) -> Table:
    """The table `preview`: a row for each model and method of which runs are there.

    Next to each mean stand half of Student's 95 % interval and half of the 95 % predictive interval
    of the mean of all `seeds`. Δ OOD is paired by seed: the mean over the runs that are there, each
    minus pi_0 of its seed, with the interval of `effect_interval`, as in all tables of changes.
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
        " with 95 % probability for normal runs. Δ OOD: change of the OOD average from π₀, paired"
        " by seed. No verdict: who looks often, and stops when it suits, errs more often than 5 %."
    )
    return Table("preview", "Accuracy so far", note, "Method", tuple(columns), tuple(rows))


def open_signs(
    scores: pd.DataFrame, models: Sequence[str], methods: Sequence[str], seeds: int
) -> list[str]:
    """The methods, as `model/method`, whose Δ OOD may still have either sign with all seeds."""
    found = []
    for model in models:
        for variant in ordered(methods):
            if variant == "pi_0":
                continue
            changes = _changes(scores, model, variant)
            if not changes.empty and _sign_is_open(changes, seeds):
                found.append(f"{model}/{method(variant).label}")
    return found


def _sign_is_open(changes: pd.Series, seeds: int) -> bool:
    final = final_contrast([Group.of(changes)], seeds)
    return not (final.low > 0 or final.high < 0)  # a single run has no interval: NaN, so open


def _cells(scores: pd.DataFrame, model: str, variant: str, seeds: int) -> list[Cell]:
    cells = []
    for benchmark in (ID, OOD_AVERAGE):
        runs = scores_by_seed(scores, model, variant, benchmark)
        seen = contrast([Group.of(runs)])
        cells += [Cell(seen.difference, seen.high - seen.difference, ".1f"), _final(runs, seeds)]
    changes = _changes(scores, model, variant)
    if variant == "pi_0" or changes.empty:
        return [*cells, Cell(None), Cell(None)]
    draws = replicates_by_seed(select_rows(scores, model=model, variant=variant))
    seen = effect_interval([(changes, draws.reindex(changes.index))])
    cells += [Cell(seen.difference, seen.high - seen.difference, "+.1f"), _final(changes, seeds)]
    return cells


def _final(values: pd.Series, seeds: int) -> Cell:
    """How far from the mean of runs, one value each, that of all seeds may lie."""
    final = final_contrast([Group.of(values)], seeds)
    half = final.high - final.difference
    return Cell(None if math.isnan(half) else f"±{half:.1f}")


def _changes(scores: pd.DataFrame, model: str, variant: str) -> pd.Series:
    """The OOD average of each run minus that of pi_0 with its seed; of no run without pi_0's."""
    own = scores_by_seed(scores, model, variant, OOD_AVERAGE)
    base = scores_by_seed(scores, model, "pi_0", OOD_AVERAGE)
    return (own - base).dropna()
