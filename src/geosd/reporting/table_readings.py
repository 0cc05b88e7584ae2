"""Changes by the readings that were not chosen, where the paper is silent."""

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from geosd.reporting.method_style import method_style
from geosd.reporting.method_tables import (
    candidate_method_table,
    mean_method_cell,
    method_table_paired_note,
    paired_method_cell,
)
from geosd.reporting.tables import Table, TableCell, TableColumn
from geosd.scores.score_table import ID, OOD_AVERAGE, score_table_replicates, scores_by_seed
from geosd.scores.step_log_tables import DRIFT, step_log_final_drift
from geosd.scores.tidy import select_tidy_rows

LABELS = {ID: "ID", OOD_AVERAGE: "OOD avg.", DRIFT: "d_FR to π₀"}


def build(
    scores: pd.DataFrame,
    drift: pd.DataFrame,
    models: Sequence[str],
    methods: Sequence[str],
    candidates: Mapping[str, str],
    changes: Mapping[str, Mapping[str, Any]],
) -> Table:
    """Build `table_readings`: each method as it is read here, and what another reading changes.

    Runs of one seed see the same problems in the same order, draw the same solutions for them and
    are examined on the same draws, so a reading is compared with the chosen one seed by seed.
    """
    rows = []
    for variant in (name for name in methods if name in candidates.values()):
        others = [name for name, owner in candidates.items() if owner == variant]
        for name in (variant, *others):
            label = method_style(variant).label if name == variant else f"  {_words(changes[name])}"
            cells: dict[str, TableCell] = {}
            for model in models:
                cells |= _cells(scores, drift, model, name, variant)
            rows.append((label, variant, cells))
    return candidate_method_table(
        "table_readings",
        "Readings that were not chosen",
        method_table_paired_note(scores, "the reading that is used"),
        "Reading",
        [column for model in models for column in _columns(model)],
        rows,
    )


def _columns(model: str) -> list[TableColumn]:
    return [
        TableColumn(f"{model}.{key}{change}", f"{head}{label}", model)
        for key, label in LABELS.items()
        for change, head in (("", ""), (".delta", "Δ "))
    ]


def _cells(
    scores: pd.DataFrame, drift: pd.DataFrame, model: str, name: str, variant: str
) -> dict[str, TableCell]:
    """Value and change of each quantity, for a method (`name` is `variant`) or another reading."""
    cells = {}
    for key in LABELS:
        runs, chosen = (
            step_log_final_drift(drift, model, v)
            if key == DRIFT
            else scores_by_seed(scores, model, v, key)
            for v in (name, variant)
        )
        form = ".3f" if key == DRIFT else ".1f"
        cells[f"{model}.{key}"] = mean_method_cell(runs, form)
        if name != variant:
            draws = score_table_replicates(select_tidy_rows(scores, model=model))
            cells[f"{model}.{key}.delta"] = paired_method_cell(runs, chosen, draws, form)
    return cells


def _words(changed: Mapping[str, Any]) -> str:
    """`{"loss_mean": "token"}` -> `loss mean: token`."""
    words = (f"{key}: {str(value).lower()}" for key, value in changed.items())
    return ", ".join(words).replace("_", " ")
