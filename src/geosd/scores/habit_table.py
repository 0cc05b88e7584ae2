"""The table of habits: what every run's responses do in the search world."""

from collections.abc import Mapping, Sequence
from dataclasses import astuple
from statistics import fmean

import pandas as pd

from geosd.problems.records import Sample, is_out_of_distribution
from geosd.problems.search.habits import HABITS, habit_shares
from geosd.scores.score_table import OOD_AVERAGE, Run, group_by_benchmark
from geosd.scores.tidy import COLUMNS

Row = tuple[str, str, float]


def collect_habits(tables: Mapping[Run, Sequence[Row]]) -> pd.DataFrame:
    """The table of habits of a study from the `habit_rows` of each run, in the order given."""
    rows = [(*astuple(run), *row) for run, rows in tables.items() for row in rows]
    return pd.DataFrame(rows, columns=list(COLUMNS["habits"]))


def habit_rows(samples: Sequence[Sample]) -> list[Row]:
    """A run's rows: benchmark, habit and value, then the means over the OOD benchmarks.

    A habit without occasion has no row, nor a mean where a benchmark lacks its row.
    """
    shares = {name: habit_shares(of) for name, of in group_by_benchmark(samples).items()}
    if outside := [shares[name] for name in shares if is_out_of_distribution(name)]:
        everywhere = [habit for habit in HABITS if all(habit in of for of in outside)]
        shares[OOD_AVERAGE] = {h: fmean(of[h] for of in outside) for h in everywhere}
    return [(name, habit, value) for name in shares for habit, value in shares[name].items()]
