"""The table of training curves: windows from one measurement to the next."""

from __future__ import annotations

import pandas as pd
import pytest

from geosd.files import DamagedFileError
from geosd.scores.score_table import ScoredRun
from geosd.scores.step_log_tables import collect_training_curves
from geosd.scores.tidy import read_tidy

LOG = """\
step,loss/total,drift/pi_0,rollout/accuracy,overlap
0,1,0.0,0.25,0.9
1,1,,0.75,
2,1,0.2,0.5,
3,1,,0.5,
4,1,,1.0,
5,,0.3,0.125,0.8
"""


def test_each_window_has_its_mean_and_the_end_its_own_measurement(tmp_path):
    (tmp_path / "steps.csv").write_text(LOG)
    collect_training_curves({ScoredRun("m", "geosd", 3, 1): tmp_path / "steps.csv"}).to_csv(
        tmp_path / "training_curves.csv", index=False
    )
    table = read_tidy("training_curves", tmp_path / "training_curves.csv")
    curves = {
        name: dict(rows[["step", "value"]].to_numpy()) for name, rows in table.groupby("quantity")
    }
    assert curves == {
        "drift/pi_0": {0: 0.0, 2: 0.2, 5: 0.3},
        "overlap": {0: 0.9, 5: 0.8},  # the second window did not measure it
        "rollout/accuracy": {0: 0.5, 2: pytest.approx(2 / 3), 5: 0.125},
    }
    assert table[["model", "variant", "seed", "draw"]].drop_duplicates().values.tolist() == [
        ["m", "geosd", 3, 1]
    ]


def test_no_runs_give_a_table_that_reads_back_empty(tmp_path):
    collect_training_curves({}).to_csv(tmp_path / "training_curves.csv", index=False)
    assert read_tidy("training_curves", tmp_path / "training_curves.csv").empty


def test_a_share_above_one_is_damage_and_is_named(tmp_path):
    rows = [("m", "geosd", 0, 0, 0, "rollout/accuracy", 1.5)]
    columns = ["model", "variant", "seed", "draw", "step", "quantity", "value"]
    path = tmp_path / "training_curves.csv"
    pd.DataFrame(rows, columns=columns).to_csv(path, index=False)
    with pytest.raises(DamagedFileError, match=r"training_curves.csv:2: value is 1.5.*from 0 to 1"):
        read_tidy("training_curves", path)
