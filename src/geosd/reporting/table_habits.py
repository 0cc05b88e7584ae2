"""Habits of each method's responses in the search world, in and out of distribution."""

from collections.abc import Sequence
from functools import partial

import pandas as pd

from geosd.problems.search.habits import HABITS
from geosd.reporting.method_style import ordered
from geosd.reporting.method_tables import mean_cell, method_table
from geosd.reporting.tables import Cell, Column, Table
from geosd.scores.score_table import ID, OOD_AVERAGE
from geosd.scores.tidy import select_rows, values_by_seed

SPLITS = {ID: "ID", OOD_AVERAGE: "OOD avg."}


def build(habits: pd.DataFrame, models: Sequence[str], methods: Sequence[str]) -> Table:
    """Build `table_habits`: a row for each method, a column for each habit on each split."""
    columns = [
        (
            Column(f"{model}.{benchmark}.{habit}", words, f"{model}, {split}"),
            partial(_cell, select_rows(habits, model=model, benchmark=benchmark, quantity=habit)),
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
    return method_table("table_habits", "Habits of the responses", note, ordered(methods), columns)


def _cell(rows: pd.DataFrame, variant: str) -> Cell:
    return mean_cell(values_by_seed(select_rows(rows, variant=variant)))
