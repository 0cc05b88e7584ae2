"""What the readings that were not chosen would change, where the paper is silent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from geosd.reporting.method_style import method
from geosd.reporting.method_tables import (
    accuracy_name,
    mean_cell,
    number_of_runs,
    paired_change_cell,
)
from geosd.reporting.specs import OutputSpec
from geosd.reporting.tables import Cell, Column, Row, Table
from geosd.scores.drift_tables import DRIFT, final_drift
from geosd.scores.score_table import ID, OOD_AVERAGE, scores_by_seed

SPEC = OutputSpec(
    title="Readings that were not chosen",
    caption=(
        "Where the paper is silent: each method as it is read here, and what another reading "
        "changes, paired by seed, with the half-width of the 95 % interval."
    ),
    reads=("scores", "drift"),
    settings=("models", "methods", "candidates", "changes"),
    needs=("benchmarks", "grid", "grid_methods"),
)

BENCHMARKS = {ID: "ID", OOD_AVERAGE: "OOD avg."}


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
    chosen = [name for name in methods if name in candidates.values()]
    columns = [column for model in models for column in _columns(model)]
    rows = []
    for variant in chosen:
        others = [name for name, owner in candidates.items() if owner == variant]
        for name in (variant, *others):
            cells = [
                cell for model in models for cell in _cells(scores, drift, model, name, variant)
            ]
            label = method(variant).label if name == variant else f"  {_words(changes[name])}"
            rows.append(Row(label, variant, tuple(cells)))
    note = (
        f"{accuracy_name(scores)} in percent, mean ± standard deviation over"
        f" {number_of_runs(scores)}. Δ is the"
        " change from the reading that is used, the mean over pairs of equal seed ± the half-width"
        " of Student's 95 % interval, without correction for the number of rows. d_FR is the mean"
        " Fisher-Rao distance from π₀ at the end of training, in radians."
    )
    title = "Readings that were not chosen"
    return Table("table_readings", title, note, "Reading", tuple(columns), tuple(rows))


def _columns(model: str) -> list[Column]:
    pairs = [*BENCHMARKS.items(), (DRIFT, "d_FR to π₀")]
    return [
        column
        for key, label in pairs
        for column in (
            Column(f"{model}.{key}", label, model),
            Column(f"{model}.{key}.delta", f"Δ {label}", model),
        )
    ]


def _cells(
    scores: pd.DataFrame, drift: pd.DataFrame, model: str, name: str, variant: str
) -> list[Cell]:
    """Value and change of each quantity, for a method (`name` is `variant`) or another reading."""
    cells = []
    for benchmark in (*BENCHMARKS, DRIFT):
        form = ".3f" if benchmark == DRIFT else ".1f"
        runs, chosen = (
            final_drift(drift, model, v)
            if benchmark == DRIFT
            else scores_by_seed(scores, model, v, benchmark)
            for v in (name, variant)
        )
        change = Cell(None) if name == variant else paired_change_cell(runs, chosen, form)
        cells += [mean_cell(runs, form), change]
    return cells


def _words(changed: Mapping[str, Any]) -> str:
    """`{"loss_mean": "token"}` -> `loss mean: token`."""
    words = (f"{key}: {str(value).lower()}" for key, value in changed.items())
    return ", ".join(words).replace("_", " ")
