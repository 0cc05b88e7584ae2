"""How far each method lies above FwdKL, paired by run: on each model, and on all together."""

from collections.abc import Sequence

import pandas as pd

from geosd.reporting.method_style import method_style, ordered_methods
from geosd.reporting.method_tables import candidate_method_table
from geosd.reporting.sentences import accuracy_in_sentence
from geosd.reporting.tables import Table, TableCell, TableColumn
from geosd.scores.score_table import ID, OOD_AVERAGE, score_table_replicates, scores_by_seed
from geosd.scores.statistics import holm, student_effect_interval
from geosd.scores.tidy import select_tidy_rows

REFERENCE = "fwdkl"
LEVEL = 0.05
LABELS = {ID: "ID", OOD_AVERAGE: "OOD"}
ALL = "all models"


def build(scores: pd.DataFrame, models: Sequence[str], methods: Sequence[str]) -> Table:
    """Build `table_paired_differences`: accuracy of each method minus that of FwdKL, in points.

    A difference is that of a run and FwdKL's run of the same seed. Intervals are Student's, of
    95 %, over base models: the mean over the runs of a draw is one value, and of all models
    together each base model counts alike.
    """
    compared = ordered_methods(name for name in methods if name not in ("pi_0", REFERENCE))
    cells: dict[str, dict[str, TableCell]] = {name: {} for name in compared}
    groups = {model: [model] for model in models}
    if len(models) > 1:
        groups[ALL] = list(models)
    for group, of_group in groups.items():
        for benchmark, label in LABELS.items():
            tests = {
                name: student_effect_interval(
                    [_differences(scores, model, name, benchmark) for model in of_group]
                )
                for name in compared
            }
            p_values = holm([2 * min(test.p, 1 - test.p) for test in tests.values()])
            for (name, test), p in zip(tests.items(), p_values, strict=True):
                half = test.high - test.difference
                rank = "best" if p < LEVEL else ""
                cells[name][f"{group} {label}"] = TableCell(test.difference, half, "+.1f", rank)
    note = (
        f"{accuracy_in_sentence(scores)} of a method minus that of FwdKL with the same seed, in"
        " points, mean ± half-width of Student's 95 % interval over base models; the draws of all"
        f" models count alike. Bold: p < {LEVEL} by the paired t test, two-sided, with Holm's"
        " correction over the methods of the column."
    )
    columns = [
        TableColumn(f"{group} {label}", label, group)
        for group in groups
        for label in LABELS.values()
    ]
    rows = ((method_style(name).label, method_style(name).kind, own) for name, own in cells.items())
    title = "Differences to FwdKL, paired by run"
    return candidate_method_table("table_paired_differences", title, note, "Method", columns, rows)


def _differences(
    scores: pd.DataFrame, model: str, variant: str, benchmark: str
) -> tuple[pd.Series, pd.Series]:
    """Differences to FwdKL by seed, and the draw of each seed's base model."""
    own = scores_by_seed(scores, model, variant, benchmark)
    reference = scores_by_seed(scores, model, REFERENCE, benchmark)
    differences = (own - reference).dropna()
    draws = score_table_replicates(select_tidy_rows(scores, model=model))
    return differences, draws.reindex(differences.index)
