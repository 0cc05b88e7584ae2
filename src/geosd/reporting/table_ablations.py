"""GeoSD without each of its parts (the paper's Table ablation)."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import pandas as pd

from geosd.claims import published as paper
from geosd.reporting.method_style import ABLATION, method_style, ordered_methods
from geosd.reporting.method_tables import (
    MethodColumn,
    change_method_cell,
    mean_method_cell,
    method_columns,
    method_table,
    method_table_title,
    published_method_cell,
)
from geosd.reporting.paper_comparison import beside_paper
from geosd.reporting.sentences import accuracy_in_sentence, number_of_runs_sentence
from geosd.reporting.tables import Table, TableCell, TableColumn
from geosd.scores.score_table import ID, OOD_AVERAGE, scores_by_seed
from geosd.scores.step_log_tables import step_log_final_drift

FULL = "geosd"


def build(
    scores: pd.DataFrame, drift: pd.DataFrame, models: Sequence[str], methods: Sequence[str]
) -> Table:
    """Build `table_ablations`: accuracies, coverage and drift of GeoSD and of each ablation."""
    shown = [v for v in ordered_methods(methods) if v == FULL or method_style(v).kind == ABLATION]
    columns: list[MethodColumn] = []
    for model in models:
        family = paper.published_family(model)
        if paper.published_number(family, "geosd_no_prox", ID) is None:
            family = None
        for column in _columns(scores, model, method_table_title(model, family)):
            key = column.key.removeprefix(f"{model}.")
            other_k = key == "ood_pass" and not column.label.endswith("@16")
            columns += method_columns(
                column,
                partial(_measured, scores, drift, model, key=key),
                partial(_published, family, key=key) if family else None,
                "paper @16" if other_k else "paper",
            )
    note = (
        f"{accuracy_in_sentence(scores)} and pass@k in percent, mean ± standard deviation over"
        f" {number_of_runs_sentence(scores)}. Δ OOD is the change of the OOD average from the full"
        " method. d_FR is the mean Fisher-Rao distance from π₀ at the end of training, in radians."
        f"{beside_paper(columns)}"
    )
    return method_table("table_ablations", "Ablations", note, shown, columns, "Variant", "GeoSD")


def _columns(scores: pd.DataFrame, model: str, title: str) -> list[TableColumn]:
    ks = scores.loc[(scores["model"] == model) & (scores["metric"] == "pass@k"), "k"]
    k = "k" if ks.empty else int(ks.max())
    return [
        TableColumn(f"{model}.{ID}", "ID", title, "high"),
        TableColumn(f"{model}.{OOD_AVERAGE}", "OOD avg.", title, "high"),
        TableColumn(f"{model}.delta_ood", "Δ OOD", title),
        TableColumn(f"{model}.ood_pass", f"OOD pass@{k}", title, "high"),
        TableColumn(f"{model}.d_fr", "d_FR to π₀", title),
    ]


def _measured(
    scores: pd.DataFrame, drift: pd.DataFrame, model: str, variant: str, key: str
) -> TableCell:
    if key == "delta_ood":
        runs, full = (scores_by_seed(scores, model, name, OOD_AVERAGE) for name in (variant, FULL))
        if variant == FULL or runs.empty:
            return TableCell(None)
        return change_method_cell(runs.mean(), full.mean())
    if key == "d_fr":
        return mean_method_cell(step_log_final_drift(drift, model, variant), ".2f")
    benchmark, metric = (OOD_AVERAGE, "pass@k") if key == "ood_pass" else (key, "avg@k")
    return mean_method_cell(scores_by_seed(scores, model, variant, benchmark, metric))


def _published(family: str, variant: str, key: str) -> TableCell:
    if key == "delta_ood":
        # The full method's own is its gain over pi_0, another quantity.
        return (
            TableCell(None)
            if variant == FULL
            else published_method_cell(family, variant, key, form="+.1f")
        )
    if key == "d_fr":
        return published_method_cell(family, variant, OOD_AVERAGE, "drift/pi_0", ".2f")
    if key == "ood_pass":
        return published_method_cell(family, variant, OOD_AVERAGE, "pass@k")
    return replace(published_method_cell(family, variant, key), sd=None)
