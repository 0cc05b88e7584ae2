"""Drift is the last value that the step log has, whatever else it has."""

from __future__ import annotations

import pytest

from geosd.analysis import drift
from geosd.analysis.scores import Run


def test_the_last_logged_value_counts_though_later_steps_did_not_log_it(tmp_path):
    log = tmp_path / "steps.csv"
    log.write_text("step,loss,drift/pi_0,other\n0,3.0,0.0,9\n10,2.0,0.25,9\n11,1.5,,9\n")
    assert drift.last(log) == {"loss": 1.5, "drift/pi_0": 0.25}


def test_rows_are_tidy_and_read_back(tmp_path):
    log = tmp_path / "steps.csv"
    log.write_text("step,drift/pi_0\n1,0.5\n0,0.1\n")
    table = drift.collect({Run("m", "geosd", 4): log})
    table.to_csv(tmp_path / "drift.csv", index=False)
    again = drift.read(tmp_path / "drift.csv")
    assert again.to_dict("records") == [
        {"model": "m", "variant": "geosd", "seed": 4, "quantity": "drift/pi_0", "value": 0.5}
    ]
    assert drift.values(again, "m", "geosd", "drift/pi_0").to_dict() == {4: 0.5}
    assert drift.values(again, "m", "fwdkl", "drift/pi_0").empty


@pytest.mark.parametrize("text", ["", "step,loss\n", "loss\n1\n"])
def test_a_damaged_log_is_named(tmp_path, text):
    log = tmp_path / "steps.csv"
    log.write_text(text)
    with pytest.raises(ValueError, match="(?s)steps.csv: not a step log.*Hint:"):
        drift.last(log)


def test_a_missing_log_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match="(?s)steps.csv.*Hint:"):
        drift.last(tmp_path / "steps.csv")


def test_no_runs_give_a_table_that_reads_back_empty(tmp_path):
    drift.collect({}).to_csv(tmp_path / "drift.csv", index=False)
    assert drift.read(tmp_path / "drift.csv").empty
