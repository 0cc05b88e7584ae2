"""ID and OOD accuracy of every method (the paper's Table main_id_ood)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import pandas as pd

from geosd.claims import published as paper
from geosd.reporting.method_cells import (
    NOT_THE_SAME_MODEL,
    MethodColumns,
    accuracy_cell,
    accuracy_name,
    change_cell,
    count_runs,
    group_title,
    published_cell,
)
from geosd.reporting.specs import OutputSpec
from geosd.reporting.style import ordered
from geosd.reporting.tables import Cell, Column, Table, ranked
from geosd.scores.score_table import OOD_AVERAGE

SPEC = OutputSpec(
    title="accuracy in and out of distribution",
    caption=(
        "Accuracy in and out of distribution, mean over seeds and its standard deviation, beside "
        "the paper's."
    ),
    reads=("scores",),
    settings=("models", "methods"),
)

QUANTITIES = (("id", "ID"), (OOD_AVERAGE, "OOD avg."), ("delta_ood", "Δ OOD"))


def build(scores: pd.DataFrame, models: Sequence[str], methods: Sequence[str]) -> Table:
    """The main table: a row per method, per model ID, OOD average and its change from pi_0.

    Args:
        scores: Tidy scores.
        models: Models, in order.
        methods: Variants, in any order; the rows take the paper's.

    Returns:
        The table, best and second-best marked. A model that stands for a family of the paper has
        the paper's number beside each of its own.
    """
    table = MethodColumns(ordered(methods))
    for model in models:
        family = paper.family(model)
        title = group_title(model, family)
        for key, label in QUANTITIES:
            column = Column(f"{model}.{key}", label, title, "high")
            table.add(column, partial(_measured, scores, model, key=key))
            if family:
                column = Column(f"{model}.{key}.paper", "paper", title)
                table.add(column, partial(_published, family, key=key))
    note = (
        f"{accuracy_name(scores)} in percent, mean ± standard deviation over"
        f" {count_runs(scores)}. OOD avg. is taken within each run over its OOD benchmarks; Δ OOD"
        f" is its change from π₀. {NOT_THE_SAME_MODEL}"
    )
    title = "In-distribution and out-of-distribution accuracy"
    return ranked(Table("table_main", title, note, "Method", table.columns, table.rows()))


def _measured(scores: pd.DataFrame, model: str, variant: str, key: str) -> Cell:
    if key != "delta_ood":
        return accuracy_cell(scores, model, variant, key)
    if variant == "pi_0":
        return Cell(None)
    ood, base = (accuracy_cell(scores, model, name, OOD_AVERAGE) for name in (variant, "pi_0"))
    return change_cell(ood.number, base.number)


def _published(family: str, variant: str, key: str) -> Cell:
    if key != "delta_ood":
        return published_cell(family, variant, key)
    if variant == "pi_0":
        return Cell(None)
    ood, base = (published_cell(family, name, OOD_AVERAGE) for name in (variant, "pi_0"))
    change = change_cell(ood.number, base.number)
    return change if change.number is None else replace(change, value=round(change.number, 10))
