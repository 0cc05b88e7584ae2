"""ID and OOD accuracy of every method, here and in the paper (its Table main_id_ood)."""

from collections.abc import Sequence

import pandas as pd

from geosd.claims.published import paper_family
from geosd.reporting.method_style import method, ordered
from geosd.reporting.method_tables import (
    accuracy_cell,
    accuracy_note,
    candidate_table,
    change_cell,
    group_title,
    published_cell,
)
from geosd.reporting.paper_comparison import NOT_THE_SAME_MODEL
from geosd.reporting.tables import Cell, Column, Table
from geosd.scores.score_table import ID, OOD_AVERAGE

HERE, PAPER = "this study", "the paper"


def build(scores: pd.DataFrame, models: Sequence[str], methods: Sequence[str]) -> Table:
    """Build `table_main_vs_paper`: a block for each model, ours left and the paper's right."""
    columns = [
        Column(f"{key}{ending}", label, group)
        for ending, group in (("", HERE), (".paper", PAPER))
        for key, label in ((ID, "ID"), (OOD_AVERAGE, "OOD avg."), ("delta_ood", "Δ OOD"))
    ]
    rows = [
        (method(v).label, group_title(model, paper_family(model)), _cells(scores, model, v))
        for model in models
        for v in ordered(methods)
    ]
    note = f"{accuracy_note(scores)}. Δ OOD is the change of the OOD average from π₀."
    title = "Accuracy here and in the paper"
    note += NOT_THE_SAME_MODEL
    return candidate_table("table_main_vs_paper", title, note, "Method", columns, rows)


def _cells(scores: pd.DataFrame, model: str, variant: str) -> dict[str, Cell]:
    cells = {}
    for key in (ID, OOD_AVERAGE):
        cells[key] = accuracy_cell(scores, model, variant, key)
        cells[f"{key}.paper"] = published_cell(paper_family(model), variant, key)
    if variant != "pi_0":
        base = {
            "": accuracy_cell(scores, model, "pi_0", OOD_AVERAGE),
            ".paper": published_cell(paper_family(model), "pi_0", OOD_AVERAGE),
        }
        for ending, cell in base.items():
            change = change_cell(cells[f"{OOD_AVERAGE}{ending}"].number, cell.number)
            # Printed numbers have one digit behind the point, and so has their difference.
            value = None if change.number is None else round(change.number, 10)
            cells[f"delta_ood{ending}"] = Cell(value, form="+.1f")
    return cells
