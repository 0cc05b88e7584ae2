"""What a teacher of other weights changes, over the learning rate."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from geosd.reporting.method_style import method, ordered
from geosd.reporting.method_tables import (
    accuracy_name,
    mean_cell,
    number_of_runs,
    paired_change_cell,
    short_rate,
)
from geosd.reporting.specs import OutputSpec
from geosd.reporting.tables import Cell, Column, Row, Table
from geosd.scores.drift_tables import DRIFT, final_drift
from geosd.scores.score_table import ID, OOD_AVERAGE, scores_by_seed

SPEC = OutputSpec(
    title="teachers of other weights",
    caption=(
        "Each method with the live student as its teacher, by learning rate, and what a teacher "
        "fixed at the base model, delayed by up to a refresh of the anchor, or averaged over "
        "recent students changes, paired by seed, with the half-width of the 95 % interval."
    ),
    reads=("scores", "drift"),
    settings=("models", "points"),
    swept=("learning_rate", "teacher"),
    needs=("benchmarks", "live"),
)

BENCHMARKS = {ID: "ID", OOD_AVERAGE: "OOD avg."}
LIVE = "live"
OTHERS = {
    "fixed": "teacher fixed at π₀",
    "delayed": "teacher delayed (the anchor)",
    "average": "teacher a moving average",
}


def build(
    scores: pd.DataFrame,
    drift: pd.DataFrame,
    models: Sequence[str],
    points: Mapping[str, Sequence[Mapping[str, Any]]],
) -> Table:
    """Build `table_teacher`: the live teacher at each learning rate, and what another one changes.

    Runs of one seed see the same problems in the same order and draw the same solutions for them,
    so another teacher is compared with the live one seed by seed.
    """
    runs = {
        (model, point["variant"], point["learning_rate"], point["teacher"]): point["run"]
        for model in models
        for point in points[model]
    }
    swept = list(dict.fromkeys((variant, rate) for _, variant, rate, _ in runs))
    teachers = [name for name in OTHERS if any(name == teacher for *_, teacher in runs)]
    columns = [column for model in models for column in _columns(model, teachers, len(models) > 1)]
    base = [cell for model in models for cell in _base_cells(scores, model, len(teachers))]
    rows = [Row(method("pi_0").label, "pi_0", tuple(base))]
    for variant in ordered(variant for variant, _ in swept):
        for rate in sorted(rate for name, rate in swept if name == variant):
            cells = []
            for model in models:
                chosen = runs[model, variant, rate, LIVE]
                others = [runs.get((model, variant, rate, name)) for name in teachers]
                cells += _cells(scores, drift, model, chosen, others)
            rows.append(Row(f"{method(variant).label}, {short_rate(rate)}", variant, tuple(cells)))
    note = (
        f"{accuracy_name(scores)} in percent, mean ± standard deviation over"
        f" {number_of_runs(scores)}. Δ is the change from the live teacher at the same learning"
        " rate, the mean over pairs of equal seed ± the half-width of Student's 95 % interval,"
        " without correction for the number of rows. d_FR is the mean Fisher-Rao distance from π₀"
        " at the end of training, in radians."
    )
    title = "Teachers of other weights"
    heading = "Method, learning rate"
    return Table("table_teacher", title, note, heading, tuple(columns), tuple(rows))


def _columns(model: str, teachers: Sequence[str], named: bool) -> list[Column]:
    """The columns of a model, whose name is in their headings where there are several."""
    where = f"{model}: " if named else ""
    live = {**BENCHMARKS, DRIFT: "d_FR to π₀"}
    columns = [
        Column(f"{model}.{LIVE}.{key}", label, f"{where}live teacher")
        for key, label in live.items()
    ]
    return columns + [
        Column(f"{model}.{name}.{key}.delta", f"Δ {label}", f"{where}{OTHERS[name]}")
        for name in teachers
        for key, label in BENCHMARKS.items()
    ]


def _base_cells(scores: pd.DataFrame, model: str, teachers: int) -> list[Cell]:
    """The base model's accuracies, which no teacher changes."""
    accuracies = [mean_cell(scores_by_seed(scores, model, "pi_0", key)) for key in BENCHMARKS]
    return [*accuracies, Cell(None), *[Cell(None)] * (teachers * len(BENCHMARKS))]


def _cells(
    scores: pd.DataFrame,
    drift: pd.DataFrame,
    model: str,
    live: str,
    others: Sequence[str | None],
) -> list[Cell]:
    """Accuracies and drift with the live teacher, and the changes that the others make."""
    chosen = {key: scores_by_seed(scores, model, live, key) for key in BENCHMARKS}
    cells = [mean_cell(runs) for runs in chosen.values()]
    cells.append(mean_cell(final_drift(drift, model, live), ".3f"))
    for run in others:
        for key, runs in chosen.items():
            other = None if run is None else scores_by_seed(scores, model, run, key)
            cells.append(Cell(None) if other is None else paired_change_cell(other, runs))
    return cells
