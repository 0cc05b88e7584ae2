"""Drift is what the last steps of the log say, whatever else it has."""

from __future__ import annotations

import pytest

from geosd.scores import drift_table as drift
from geosd.scores.score_table import Run


def test_the_end_of_training_is_the_mean_of_the_last_logged_values(tmp_path):
    log = tmp_path / "steps.csv"
    lines = [f"{step},{step},{'' if step % 2 else step / 4}" for step in range(20)]
    log.write_text("\n".join(["step,loss/total,drift/pi_0", *lines]))
    last_eight, last_eight_even = range(12, 20), range(4, 20, 2)
    assert drift.final_values(log) == {
        "loss/total": sum(last_eight) / 8,
        "drift/pi_0": sum(last_eight_even) / 4 / 8,
    }


def test_a_short_log_is_averaged_over_what_it_has(tmp_path):
    log = tmp_path / "steps.csv"
    log.write_text("step,drift/pi_0,other\n0,0.5,9\n1,0.25,9\n")
    assert drift.final_values(log) == {"drift/pi_0": 0.375}


def test_rows_are_tidy_and_read_back(tmp_path):
    log = tmp_path / "steps.csv"
    log.write_text("step,drift/pi_0\n1,0.5\n0,\n")
    table = drift.collect({Run("m", "geosd", 4): log})
    table.to_csv(tmp_path / "drift.csv", index=False)
    again = drift.read(tmp_path / "drift.csv")
    assert again.to_dict("records") == [
        {"model": "m", "variant": "geosd", "seed": 4, "quantity": "drift/pi_0", "value": 0.5}
    ]
    assert drift.values(again, "m", "geosd", "drift/pi_0").to_dict() == {4: 0.5}
    assert drift.values(again, "m", "fwdkl", "drift/pi_0").empty


@pytest.mark.parametrize("text", ["", "step,loss/total\n", "loss\n1\n"])
def test_a_damaged_log_is_named(tmp_path, text):
    log = tmp_path / "steps.csv"
    log.write_text(text)
    with pytest.raises(ValueError, match="(?s)steps.csv: not a step log.*Hint:"):
        drift.final_values(log)


def test_a_missing_log_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match="(?s)steps.csv.*Hint:"):
        drift.final_values(tmp_path / "steps.csv")


def test_no_runs_give_a_table_that_reads_back_empty(tmp_path):
    drift.collect({}).to_csv(tmp_path / "drift.csv", index=False)
    assert drift.read(tmp_path / "drift.csv").empty
