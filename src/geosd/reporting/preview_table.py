"""The main table of a study that is under way: what is there, and what missing seeds may change."""

import math
from collections.abc import Iterator, Sequence

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

    Beside each mean stand half of Student's 95 % interval and half of the 95 % predictive interval
    of the mean of all `seeds`. Δ OOD is the difference of means from pi_0, as in `table_main`.
    """
    columns = [Column("n", "seeds")]
    for label in ("ID", "OOD avg.", "Δ OOD"):
        columns += [Column(label, label), Column(f"{label}.final", "final")]
    rows = tuple(
        Row(method(variant).label, model, (Cell(f"{n} of {seeds}"), *cells))
        for model in models
        for variant in ordered(methods)
        if (n := len(scores_by_seed(scores, model, variant, ID)))
        and (cells := [*_cells(scores, model, variant, seeds)])
    )
    note = (
        f"PREVIEW: {accuracy_name(scores)} in percent, mean ± half of Student's 95 % interval over"
        f" the runs that are there. Final: how far from it the mean of all {seeds} seeds may lie,"
        " with 95 % probability for normal runs. Δ OOD: change of the OOD average from π₀. No"
        " verdict: who looks often, and stops when it suits, errs more often than 5 %."
    )
    return Table("preview", "Accuracy so far", note, "Method", tuple(columns), rows)


def open_signs(
    scores: pd.DataFrame, models: Sequence[str], methods: Sequence[str], seeds: int
) -> list[str]:
    """The methods, as `model/method`, whose Δ OOD may still have either sign with all seeds."""
    return [
        f"{model}/{method(variant).label}"
        for model in models
        for variant in ordered(methods)
        if variant != "pi_0" and (groups := _change(scores, model, variant))
        # A single run has no interval, and leaves its sign open.
        if not ((final := final_contrast(groups, seeds)).low > 0 or final.high < 0)
    ]


def _cells(scores: pd.DataFrame, model: str, variant: str, seeds: int) -> Iterator[Cell]:
    accuracies = [
        [Group.of(scores_by_seed(scores, model, variant, at))] for at in (ID, OOD_AVERAGE)
    ]
    change = _change(scores, model, variant) if variant != "pi_0" else []
    for groups, form in zip([*accuracies, change], (".1f", ".1f", "+.1f"), strict=True):
        if not groups:
            yield from (Cell(None), Cell(None))
            continue
        seen, final = contrast(groups), final_contrast(groups, seeds)
        yield Cell(seen.difference, seen.high - seen.difference, form)
        half = final.high - final.difference
        yield Cell(None if math.isnan(half) else f"±{half:.1f}")


def _change(scores: pd.DataFrame, model: str, variant: str) -> list[Group]:
    """The groups whose means add up to the OOD average's change from pi_0; empty without both."""
    own, base = (scores_by_seed(scores, model, v, OOD_AVERAGE) for v in (variant, "pi_0"))
    if own.empty or base.empty:
        return []
    return [Group.of(own), Group.of(-base)]
