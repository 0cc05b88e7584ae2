"""Columns of fresh benchmarks: one group, after those of the study's other benchmarks."""

from functools import partial

import pandas as pd

from geosd.problems.fresh_benchmarks import shown_name
from geosd.reporting.method_tables import MethodColumn, accuracy_method_cell
from geosd.reporting.tables import TableColumn
from geosd.scores.score_table import fresh_scored

FRESH_NOTE = " Fresh benchmarks stand apart: no average, change, test or claim reads them."


def fresh_columns(scores: pd.DataFrame, model: str) -> list[MethodColumn]:
    """A column for each fresh benchmark of a model; none where the study has none."""
    found: list[MethodColumn] = []
    for benchmark in fresh_scored(scores, model):
        column = TableColumn(
            f"{model}.{benchmark}", shown_name(benchmark), f"{model}, fresh benchmarks", "high"
        )
        found.append((column, partial(accuracy_method_cell, scores, model, benchmark=benchmark)))
    return found
