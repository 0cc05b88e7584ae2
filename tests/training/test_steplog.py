import os
import shutil

import pandas as pd
import pytest
from accelerate.tracking import GeneralTracker

from geosd.training import step_log
from geosd.training.step_log import CutStepLogError, StepLog, check_step_log_trackers


def write(folder, start, stop, offset=0.0):
    log = StepLog(folder, start)
    for step in range(start, stop):
        values = {"loss/total": step + offset, "drift/pi_0": 0.1 * step}
        if step % 2 == 0:
            values["overlap"] = 1.0
        log.write(values)
    log.close()
    return log


def test_every_metric_is_a_column_and_a_step_without_a_value_is_empty(tmp_path):
    table = write(tmp_path / "log", 0, 4).table()
    assert list(table.columns) == ["drift/pi_0", "loss/total", "overlap"]
    assert table["loss/total"].tolist() == [0, 1, 2, 3]
    assert table["overlap"].isna().tolist() == [False, True, False, True]


def test_a_resumed_log_is_that_of_an_undisturbed_run(tmp_path):
    whole = write(tmp_path / "whole", 0, 6).table()
    write(tmp_path / "cut", 0, 5, offset=100.0)  # steps 2.. will be done again
    for path in (tmp_path / "cut").rglob("loss/total.tsv"):
        path.write_text(path.read_text() + "5\t0.")  # a line that a kill cut short
    kept = pd.concat([write(tmp_path / "cut", 2, 6).table()])
    assert kept["loss/total"].tolist() == [100.0, 101.0, 2, 3, 4, 5]
    assert kept.drop(columns="loss/total").equals(whole.drop(columns="loss/total"))


def test_a_log_started_anew_forgets_what_was_there(tmp_path):
    write(tmp_path / "log", 0, 5)
    assert len(write(tmp_path / "log", 0, 2).table()) == 2


@pytest.mark.parametrize("look", ["sync", "table", "resume"])
def test_a_log_that_lost_its_beginning_while_the_run_went_on_is_refused(tmp_path, look):
    folder = tmp_path / "scratch/log"
    log = StepLog(folder, 0)
    for step in range(4):
        log.write({"loss/total": float(step)})
        if step == 1:
            shutil.rmtree(folder.parent)
    with pytest.raises(CutStepLogError, match="(?s)lacks 2 of 4 steps .*Hint: `rm -r .*scratch`"):
        StepLog(folder, 4) if look == "resume" else getattr(log, look)()
    log.close()
    assert len(write(folder, 0, 2).table()) == 2  # begun anew


def test_syncing_waits_for_every_table(tmp_path, monkeypatch):
    log, synced = write(tmp_path / "log", 0, 2), []
    monkeypatch.setattr(os, "fsync", lambda fd: synced.append(os.readlink(f"/proc/self/fd/{fd}")))
    log.sync()
    assert sorted(synced) == sorted(map(str, (tmp_path / "log").rglob("*.tsv")))


class Recorder(GeneralTracker):
    """What a tracker is given."""

    name, requires_logging_directory, tracker = "recorder", False, None

    def __init__(self):
        super().__init__()
        self.settings, self.values, self.ended = {}, [], False

    def store_init_configuration(self, values):
        self.settings |= values

    def log(self, values, step, **kwargs):
        self.values.append((step, values))

    def finish(self):
        self.ended = True


def test_another_tracker_gets_the_settings_and_each_step(tmp_path):
    recorder = Recorder()
    settings = {"steps": 2, "objective": {"name": "geosd"}, "teacher": None}
    log = StepLog(tmp_path / "log", 0, [recorder], "a run", settings)
    log.write({"loss/total": 1.0, "overlap": float("nan")})
    log.write({"loss/total": 0.5})
    log.close()
    assert recorder.settings == {"steps": 2, "objective/name": "geosd", "teacher": "None"}
    assert recorder.values == [(0, {"loss/total": 1.0}), (1, {"loss/total": 0.5})]
    assert recorder.ended
    assert log.table()["loss/total"].tolist() == [1.0, 0.5]


def test_tensorboard_gets_each_step_and_goes_on_after_a_resume(tmp_path):
    """With either of the packages that write its files; only one of them can read them."""
    pytest.importorskip("tensorboard", reason="no TensorBoard. Hint: pip install tensorboard")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    for start in (0, 2):
        log = StepLog(tmp_path / "log", start, ["tensorboard"], "a run", {"betas": [0.9, 0.95]})
        for step in (start, start + 1):
            log.write({"loss/total": 1.0 / (1 + step)})
        log.close()
    events = EventAccumulator(str(tmp_path / "log/geosd")).Reload()
    written = {each.step: each.value for each in events.Scalars("loss/total")}
    assert written == pytest.approx({0: 1.0, 1: 1 / 2, 2: 1 / 3, 3: 1 / 4})


def test_an_unknown_tracker_and_one_that_is_not_installed_are_refused(monkeypatch):
    with pytest.raises(ValueError, match="no tracker; allowed are tensorboard, wandb, trackio"):
        check_step_log_trackers(["tensorbord"])
    monkeypatch.setattr(step_log, "get_available_trackers", lambda: ["dvclive"])
    with pytest.raises(ModuleNotFoundError, match=r"wandb is not installed(.|\n)*pip install"):
        check_step_log_trackers(["wandb"])
