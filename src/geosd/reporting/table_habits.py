"""Habits of each method's responses in the search world, in and out of distribution."""

from collections.abc import Sequence
from functools import partial

import pandas as pd

from geosd.problems.search.habits import HABITS
from geosd.reporting.method_style import ordered_methods
from geosd.reporting.method_tables import mean_method_cell, method_table
from geosd.reporting.tables import Table, TableCell, TableColumn
from geosd.scores.score_table import ID, OOD_AVERAGE
from geosd.scores.tidy import select_tidy_rows, tidy_values_by_seed

SPLITS = {ID: "ID", OOD_AVERAGE: "OOD avg."}


def build(habits: pd.DataFrame, models: Sequence[str], methods: Sequence[str]) -> Table:
    """Build `table_habits`: a row for each method, a column for each habit on each split."""
    columns = [
        (
            TableColumn(f"{model}.{benchmark}.{habit}", words, f"{model}, {split}"),
            partial(
                _cell, select_tidy_rows(habits, model=model, benchmark=benchmark, quantity=habit)
            ),
        )
        for model in models
        for benchmark, split in SPLITS.items()
        for habit, words in HABITS.items()
    ]
    note = (
        "Percent of the occasions, mean ± standard deviation over runs. First values and cuts are"
        " of all responses, repeats of all trials, checks of the values that pass the first"
        " equation, retries of the trials after a failed one. OOD is the mean of its benchmarks"
        " within each run."
    )
    return method_table(
        "table_habits", "Habits of the responses", note, ordered_methods(methods), columns
    )


def _cell(rows: pd.DataFrame, variant: str) -> TableCell:
    return mean_method_cell(tidy_values_by_seed(select_tidy_rows(rows, variant=variant)))
