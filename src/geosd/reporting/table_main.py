"""ID and OOD accuracy of every method (the paper's Table main_id_ood)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

import pandas as pd

from geosd.claims import published as paper
from geosd.reporting.method_style import ordered
from geosd.reporting.method_tables import (
    NOT_THE_SAME_MODEL,
    MethodColumn,
    accuracy_cell,
    accuracy_name,
    change_cell,
    group_title,
    method_columns,
    method_table,
    number_of_runs,
    published_cell,
)
from geosd.reporting.specs import OutputSpec
from geosd.reporting.tables import Cell, Column, Table
from geosd.scores.score_table import OOD_AVERAGE

SPEC = OutputSpec(
    title="accuracy in and out of distribution",
    caption=(
        "Accuracy in and out of distribution, mean over seeds and its standard deviation, beside "
        "the paper's."
    ),
    reads=("scores",),
    settings=("models", "methods"),
    paper="Table main_id_ood",
)

QUANTITIES = (("id", "ID"), (OOD_AVERAGE, "OOD avg."), ("delta_ood", "Δ OOD"))


def build(scores: pd.DataFrame, models: Sequence[str], methods: Sequence[str]) -> Table:
    """Build `table_main`, the main table: ID, OOD average and its change from pi_0 by method.

    A model that stands for a family of the paper has the paper's number beside each of its own.
    """
    columns: list[MethodColumn] = []
    for model in models:
        family = paper.paper_family(model)
        measured, published = partial(accuracy_cell, scores, model), None
        for key, label in QUANTITIES:
            if family:
                published = partial(_cell, partial(published_cell, family), key, digits=10)
            column = Column(f"{model}.{key}", label, group_title(model, family), "high")
            columns += method_columns(column, partial(_cell, measured, key), published)
    note = (
        f"{accuracy_name(scores)} in percent, mean ± standard deviation over"
        f" {number_of_runs(scores)}. OOD avg. is taken within each run over its OOD benchmarks;"
        f" Δ OOD is its change from π₀. {NOT_THE_SAME_MODEL}"
    )
    title = "In-distribution and out-of-distribution accuracy"
    return method_table("table_main", title, note, ordered(methods), columns)


def _cell(
    accuracy: Callable[[str, str], Cell], key: str, variant: str, digits: int | None = None
) -> Cell:
    """An accuracy, or the change from pi_0, rounded if both numbers have few digits."""
    if key != "delta_ood":
        return accuracy(variant, key)
    if variant == "pi_0":
        return Cell(None)
    change = change_cell(*(accuracy(v, OOD_AVERAGE).number for v in (variant, "pi_0")))
    if digits is None or change.number is None:
        return change
    return replace(change, value=round(change.number, digits))
