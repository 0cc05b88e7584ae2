"""Which candidate of each variant's grid is best on the validation problems."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pandas as pd

from geosd.reporting.method_style import method
from geosd.reporting.method_tables import accuracy_cell, accuracy_name, number_of_runs
from geosd.reporting.specs import OutputSpec
from geosd.reporting.tables import Column, Row, Table, ranked

SPEC = OutputSpec(
    title="the candidates of each method",
    caption=(
        "Each candidate's accuracy on the validation problems, from which the rates of the "
        "studies were chosen."
    ),
    reads=("scores",),
    settings=("models", "candidates"),
)

VALIDATION = "select_validation"


def build(scores: pd.DataFrame, models: Sequence[str], candidates: Mapping[str, str]) -> Table:
    """Build `table_selection`: validation accuracy of each candidate of each method's grid.

    Among the candidates of one variant the best is marked, and of equals the first, because grids
    are written from small steps to large.
    """
    columns = tuple(
        Column(f"{model}.{VALIDATION}", "validation", model, "high") for model in models
    )
    rows: list[Row] = []
    for variant in dict.fromkeys(candidates.values()):
        label = method(variant).label
        block = tuple(
            Row(
                name.replace(f"{variant}-", f"{label} "),
                variant,
                tuple(accuracy_cell(scores, model, name, VALIDATION) for model in models),
            )
            for name, owner in candidates.items()
            if owner == variant
        )
        rows += ranked(Table("block", "", "", "", columns, block)).rows
    note = (
        f"{accuracy_name(scores)} on the validation problems, in percent, over"
        f" {number_of_runs(scores)}; every candidate is trained on the selection problems. Best and"
        " second-best of each method."
    )
    title = "Selection of hyperparameters"
    return Table("table_selection", title, note, "Candidate", columns, tuple(rows))
