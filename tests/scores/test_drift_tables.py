"""Drift is what the step logs say: at the end of training, and at each step that measured it."""

from __future__ import annotations

import pytest

from geosd.files import DamagedFileError
from geosd.scores import step_log_tables as drift
from geosd.scores.score_table import ScoredRun
from geosd.scores.tidy import read_tidy


def test_the_end_of_training_is_the_measurement_after_the_last_step_alone(tmp_path):
    log = tmp_path / "steps.csv"
    lines = [f"{step},{step},{'' if step % 2 else step / 8}," for step in range(20)]
    last = "20,,2.5,0.999"
    columns = "step,loss/total,drift/pi_0,support/teacher_mass_mean"
    log.write_text("\n".join([columns, last, *lines, ""]))  # in whatever order
    assert drift.step_log_end_values(log) == {
        "drift/pi_0": 2.5,
        "support/teacher_mass_mean": 0.999,
    }


@pytest.mark.parametrize("last", ["1,1.0,0.5", "1,,"])
def test_a_log_that_ends_with_a_step_is_refused(tmp_path, last):
    log = tmp_path / "steps.csv"
    log.write_text(f"step,loss/total,drift/pi_0\n0,1.0,0.25\n{last}\n")
    with pytest.raises(ValueError, match="(?s)row 1 is not the measurement after.*Hint:"):
        drift.step_log_end_values(log)


def test_rows_are_tidy_and_read_back(tmp_path):
    log = tmp_path / "steps.csv"
    log.write_text("step,drift/pi_0\n1,0.5\n0,\n")
    table = drift.collect_step_log_drift({ScoredRun("m", "geosd", 4, 1): log})
    table.to_csv(tmp_path / "drift.csv", index=False)
    again = read_tidy("drift", tmp_path / "drift.csv")
    run = {"model": "m", "variant": "geosd", "seed": 4, "draw": 1}
    assert again.to_dict("records") == [{**run, "quantity": "drift/pi_0", "value": 0.5}]
    assert drift.step_log_final_drift(again, "m", "geosd").to_dict() == {4: 0.5}
    assert drift.step_log_final_drift(again, "m", "fwdkl").empty


@pytest.mark.parametrize("text", ["", "step,loss/total\n", "loss\n1\n"])
def test_a_damaged_log_is_named(tmp_path, text):
    log = tmp_path / "steps.csv"
    log.write_text(text)
    with pytest.raises(ValueError, match="(?s)steps.csv: not a step log.*Hint:"):
        drift.step_log_end_values(log)


@pytest.mark.parametrize(
    ("last", "expected"),
    [
        ("1,,inf", ":3: drift/pi_0 is inf; expected a number from 0 to 3.14159"),
        ("1,,4.5", ":3: drift/pi_0 is 4.5"),
        ("1,,-0.5", ":3: drift/pi_0 is -0.5"),
        ("1,,x", ":3: drift/pi_0 is 'x'; expected a number"),
        ('1,,"0,5"', ":3: drift/pi_0 is '0,5'; expected a number"),
        ("2,,0.5", ": step 1 is missing"),
        ("0,,0.5", ": step 1 is missing"),
    ],
)
def test_a_number_that_is_none_is_named_with_its_line(tmp_path, last, expected):
    log = tmp_path / "steps.csv"
    log.write_text(f"step,loss/total,drift/pi_0\n0,1.0,0.25\n{last}\n")
    with pytest.raises(DamagedFileError, match=f"(?s)^{log}{expected}.*\nHint: `rm {log}`"):
        drift.step_log_end_values(log)


def test_a_missing_log_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match="(?s)steps.csv.*Hint:"):
        drift.step_log_end_values(tmp_path / "steps.csv")


def test_no_runs_give_a_table_that_reads_back_empty(tmp_path):
    drift.collect_step_log_drift({}).to_csv(tmp_path / "drift.csv", index=False)
    assert read_tidy("drift", tmp_path / "drift.csv").empty


@pytest.fixture
def logs(tmp_path):
    """Two runs of three steps; the second one did not measure its step 1."""
    files = {}
    for seed, values in enumerate(["0.0,0.2,0.4", "0.0,,0.8"]):
        path = tmp_path / f"{seed}.csv"
        steps = "".join(f"{step},{v}\n" for step, v in enumerate(values.split(",")))
        path.write_text("step,drift/pi_0\n" + steps)
        files[ScoredRun("m", "geosd", seed)] = path
    return files


def test_a_step_that_was_not_measured_has_no_row(logs, tmp_path):
    drift.collect_step_log_drifts(logs).to_csv(tmp_path / "drift.csv", index=False)
    table = read_tidy("drift_over_steps", tmp_path / "drift.csv")
    assert table["step"].tolist() == [0, 1, 2, 0, 2]
    assert table["value"].tolist() == [0.0, 0.2, 0.4, 0.0, 0.8]


def test_a_log_without_the_drift_is_named(tmp_path):
    (tmp_path / "steps.csv").write_text("step,loss\n0,1\n")
    with pytest.raises(ValueError, match="(?s)steps.csv: missing column drift/pi_0.*Hint:"):
        drift.collect_step_log_drifts({ScoredRun("m", "sft", 0): tmp_path / "steps.csv"})
    with pytest.raises(FileNotFoundError, match="(?s)absent.csv: the step log is missing.*Hint:"):
        drift.collect_step_log_drifts({ScoredRun("m", "sft", 0): tmp_path / "absent.csv"})
