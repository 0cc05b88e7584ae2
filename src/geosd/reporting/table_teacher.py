"""Changes by a teacher of other weights, over the learning rate."""

from collections.abc import Mapping, Sequence

import pandas as pd

from geosd.reporting.method_style import method_style, method_style_rate, ordered_methods
from geosd.reporting.method_tables import (
    candidate_method_table,
    mean_method_cell,
    method_table_paired_note,
    paired_method_cell,
)
from geosd.reporting.run_accuracies import SweepPoints
from geosd.reporting.tables import Table, TableCell, TableColumn
from geosd.scores.score_table import ID, OOD_AVERAGE, score_table_replicates, scores_by_seed
from geosd.scores.step_log_tables import DRIFT, step_log_final_drift
from geosd.scores.tidy import select_tidy_rows

BENCHMARKS = {ID: "ID", OOD_AVERAGE: "OOD avg."}
LIVE = "live"
OTHERS = {
    "fixed": "teacher fixed at π₀",
    "delayed": "teacher delayed (the anchor)",
    "average": "teacher a moving average",
    "solution_only": "teacher π₀ without the question",
    "purified": "target of Purified OPSD",
}


def build(
    scores: pd.DataFrame, drift: pd.DataFrame, models: Sequence[str], points: SweepPoints
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
    teachers = [name for name in OTHERS if any(name == teacher for *_, teacher in runs)]
    base = {
        f"{model}.{LIVE}.{key}": mean_method_cell(scores_by_seed(scores, model, "pi_0", key))
        for model in models
        for key in BENCHMARKS
    }
    rows = [(method_style("pi_0").label, "pi_0", base)]
    for variant in ordered_methods(variant for _, variant, _, _ in runs):
        for rate in sorted({rate for _, name, rate, _ in runs if name == variant}):
            cells: dict[str, TableCell] = {}
            for model in models:
                by_teacher = {name: runs.get((model, variant, rate, name)) for name in teachers}
                live = runs[model, variant, rate, LIVE]
                cells |= _cells(scores, drift, model, live, by_teacher)
            rows.append(
                (f"{method_style(variant).label}, {method_style_rate(rate)}", variant, cells)
            )
    return candidate_method_table(
        "table_teacher",
        "Teachers of other weights",
        method_table_paired_note(scores, "the live teacher at the same learning rate"),
        "Method, learning rate",
        [column for model in models for column in _columns(model, teachers, len(models) > 1)],
        rows,
    )


def _columns(model: str, teachers: Sequence[str], named: bool) -> list[TableColumn]:
    """The columns of a model, whose name is in their headings where there are several."""
    where = f"{model}: " if named else ""
    live = {**BENCHMARKS, DRIFT: "d_FR to π₀"}
    columns = [
        TableColumn(f"{model}.{LIVE}.{key}", label, f"{where}live teacher")
        for key, label in live.items()
    ]
    return columns + [
        TableColumn(f"{model}.{name}.{key}.delta", f"Δ {label}", f"{where}{OTHERS[name]}")
        for name in teachers
        for key, label in BENCHMARKS.items()
    ]


def _cells(
    scores: pd.DataFrame,
    drift: pd.DataFrame,
    model: str,
    live: str,
    others: Mapping[str, str | None],
) -> dict[str, TableCell]:
    """Accuracies and drift with the live teacher, and the changes that the others make."""
    cells = {
        f"{model}.{LIVE}.{DRIFT}": mean_method_cell(step_log_final_drift(drift, model, live), ".3f")
    }
    draws = score_table_replicates(select_tidy_rows(scores, model=model))
    for key in BENCHMARKS:
        chosen = scores_by_seed(scores, model, live, key)
        cells[f"{model}.{LIVE}.{key}"] = mean_method_cell(chosen)
        for teacher, run in others.items():
            if run is not None:
                runs = scores_by_seed(scores, model, run, key)
                changed = paired_method_cell(runs, chosen, draws)
                cells[f"{model}.{teacher}.{key}.delta"] = changed
    return cells
