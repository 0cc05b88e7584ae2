"""ID and OOD accuracy of every method, here and in the paper (its Table main_id_ood)."""

from collections.abc import Sequence

import pandas as pd

from geosd.claims.published import published_family
from geosd.reporting.method_style import method_style, ordered_methods
from geosd.reporting.method_tables import (
    accuracy_method_cell,
    candidate_method_table,
    change_method_cell,
    method_table_accuracy_note,
    method_table_title,
    published_method_cell,
)
from geosd.reporting.paper_comparison import NOT_THE_SAME_MODEL
from geosd.reporting.tables import Table, TableCell, TableColumn
from geosd.scores.score_table import ID, OOD_AVERAGE

HERE, PAPER = "this study", "the paper"


def build(scores: pd.DataFrame, models: Sequence[str], methods: Sequence[str]) -> Table:
    """Build `table_main_vs_paper`: a block for each model, ours left and the paper's right."""
    columns = [
        TableColumn(f"{key}{ending}", label, group)
        for ending, group in (("", HERE), (".paper", PAPER))
        for key, label in ((ID, "ID"), (OOD_AVERAGE, "OOD avg."), ("delta_ood", "Δ OOD"))
    ]
    rows = [
        (
            method_style(v).label,
            method_table_title(model, published_family(model)),
            _cells(scores, model, v),
        )
        for model in models
        for v in ordered_methods(methods)
    ]
    note = f"{method_table_accuracy_note(scores)}. Δ OOD is the change of the OOD average from π₀."
    title = "Accuracy here and in the paper"
    note += NOT_THE_SAME_MODEL
    return candidate_method_table("table_main_vs_paper", title, note, "Method", columns, rows)


def _cells(scores: pd.DataFrame, model: str, variant: str) -> dict[str, TableCell]:
    cells = {}
    for key in (ID, OOD_AVERAGE):
        cells[key] = accuracy_method_cell(scores, model, variant, key)
        cells[f"{key}.paper"] = published_method_cell(published_family(model), variant, key)
    if variant != "pi_0":
        base = {
            "": accuracy_method_cell(scores, model, "pi_0", OOD_AVERAGE),
            ".paper": published_method_cell(published_family(model), "pi_0", OOD_AVERAGE),
        }
        for ending, cell in base.items():
            change = change_method_cell(cells[f"{OOD_AVERAGE}{ending}"].number, cell.number)
            # Printed numbers have one digit behind the point, and so has their difference.
            value = None if change.number is None else round(change.number, 10)
            cells[f"delta_ood{ending}"] = TableCell(value, form="+.1f")
    return cells
