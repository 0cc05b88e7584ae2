"""The table of habits, from a tidy file as `analyse` writes it."""

from __future__ import annotations

import pytest

from geosd.problems.records import SampleRecord
from geosd.problems.search.habits import HABITS
from geosd.reporting.table_habits import build
from geosd.scores.sample_tables import sample_habit_rows
from geosd.scores.score_table import ScoredRun
from geosd.scores.tidy import read_tidy, tidy_rows_of_runs

TEXTS = {
    ("pi_0", 0): ["7 10 13 ; 3 2 5 ok A: 3", "7 10 13 ; 7 10 13 ;"],
    ("geosd", 0): ["3 2 5 ok A: 3", "7 10 13 ; 3 2 5 ok A: 3"],
    ("geosd", 1): ["3 2 5 ok A: 3", "3 2 5 ok A: 3"],
}


def test_a_method_has_the_mean_over_its_runs_in_a_column_for_each_habit(tmp_path):
    rows = {
        ScoredRun("m", name, seed): sample_habit_rows(
            [
                SampleRecord(benchmark, "p", i, text, 9, None, False, "stop")
                for benchmark in ("id", "mixed")
                for i, text in enumerate(texts)
            ]
        )
        for (name, seed), texts in TEXTS.items()
        if (name, seed) != ("pi_0", 1)
    }
    rows[ScoredRun("m", "pi_0", 1)] = rows[ScoredRun("m", "pi_0", 0)]
    tidy_rows_of_runs("habits", rows).to_csv(tmp_path / "habits.csv", index=False)
    table = build(read_tidy("habits", tmp_path / "habits.csv"), ["m"], ["geosd", "pi_0"])
    keys = [column.key for column in table.columns]
    assert keys == [f"m.{split}.{habit}" for split in ("id", "ood_avg") for habit in HABITS]
    cells = {row.label: dict(zip(keys, row.cells, strict=True)) for row in table.rows}
    low = cells["GeoSD"]["m.id.first_low"]
    assert (low.value, low.sd) == pytest.approx((75, 50 / 2**0.5))
    assert cells["GeoSD"]["m.ood_avg.retries"].value == 0  # of one run: the other never failed
    retries = next(row for row in table.rows if row.label != "GeoSD").cells[
        keys.index("m.id.retries")
    ]
    assert retries.value == 50
