"""`make exp` changes params.yaml for a while: edits survive it, and no signal leaves a trace."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from cases import python, until

from geosd.cli.cut_off_experiment import FOLDER, name_cut_off_experiment

PARAMS = """\
# About the file.
protocol: {x: 1}

studies:
  quick:
    about: A study.
    seeds: [0, 1]

  other:
    about: Another study.
"""
CHANGED = PARAMS.replace("[0, 1]", "[0]")
STAND_IN = """\
import sys, time
from pathlib import Path
import experiment
experiment.Pipeline = type("Pipeline", (), {"of": classmethod(lambda cls, name: cls)})
experiment.Pipeline.file = Path("dvc.yaml")
experiment.Pipeline.settings = Path("settings.yaml")
experiment.Pipeline.lock = Path("dvc.lock")
experiment.hide_published_lock = lambda: None
def run_and_save(study, name):
    Path("dvc.yaml").write_text("generated")
    Path("settings.yaml").write_text("generated")
    experiment.call("-c", PROGRAM)
experiment.run_and_save = run_and_save
experiment.main("quick", "one", "seeds=[0]")
"""
WAITS = "import time, pathlib; pathlib.Path('runs').touch(); time.sleep(60)"
WAITS_FOR_EDIT = (
    "import time, pathlib; pathlib.Path('runs').touch()\n"
    "while not pathlib.Path('go on').exists(): time.sleep(.01)"
)


@pytest.fixture
def experiment(root, tmp_path, monkeypatch):
    """Start an experiment in a folder with a params.yaml; its study's program is a stand-in."""
    monkeypatch.chdir(tmp_path)
    Path("params.yaml").write_text(PARAMS)
    Path("dvc.yaml").write_text("as it was")
    started = []

    def start(program: str) -> subprocess.Popen:
        paths = [str(root / "workflow/dvc"), str(root / "src")]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
        code = STAND_IN.replace("PROGRAM", repr(program))
        command = [sys.executable, "-c", code]
        process = subprocess.Popen(
            command, env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        )
        started.append(process)
        until(Path("runs").exists)
        assert Path("params.yaml").read_text() == CHANGED
        return process

    yield start
    for process in started:
        if process.poll() is None:
            process.kill()
        process.wait()


def ended(process: subprocess.Popen) -> str:
    """What an experiment said that comes to its end by itself."""
    said, _ = process.communicate(timeout=60)
    return said


def all_is_as_it_was(params: str = PARAMS) -> None:
    assert Path("params.yaml").read_text() == params
    assert Path("dvc.yaml").read_text() == "as it was"
    assert not Path("settings.yaml").exists()
    assert not FOLDER.exists()


@pytest.mark.slow
@pytest.mark.parametrize("number", ["SIGTERM", "SIGHUP", "SIGINT"])
def test_a_signal_leaves_each_file_as_it_was_and_ends_the_program(experiment, number):
    process = experiment(WAITS)
    began = time.monotonic()
    process.send_signal(signal.Signals[number])
    ended(process)
    assert process.returncode == 128 + signal.Signals[number]
    assert time.monotonic() - began < 30  # the program sleeps for a minute
    all_is_as_it_was()


@pytest.mark.slow
def test_an_edit_that_is_made_meanwhile_stays(experiment):
    process = experiment(WAITS_FOR_EDIT)
    Path("params.yaml").write_text(CHANGED.replace("Another study", "My study"))
    Path("go on").touch()
    said = ended(process)
    assert process.returncode == 0 and "edits stay" in said
    all_is_as_it_was(PARAMS.replace("Another study", "My study"))


@pytest.mark.slow
def test_an_edit_of_the_lines_that_an_experiment_changed_is_kept_beside_them(experiment):
    process = experiment(WAITS_FOR_EDIT)
    mine = CHANGED.replace("seeds: [0]", "seeds: [7]")
    Path("params.yaml").write_text(mine)
    Path("go on").touch()
    said = ended(process)
    assert "params.yaml.edited" in said and "Hint: " in said
    assert Path("params.yaml.edited").read_text() == mine
    all_is_as_it_was()


@pytest.mark.slow
def test_a_killed_experiment_is_named_and_put_back_at_the_next_start(experiment, root, capsys):
    process = experiment(WAITS)
    name_cut_off_experiment()
    assert capsys.readouterr().err == ""  # it runs
    again = (root / "workflow/dvc/experiment.py", "--put-back")
    environment = {"PYTHONPATH": str(root / "src")}
    refused = python(*again, environment=environment)
    assert refused.returncode and "An experiment runs in this folder" in refused.stderr
    process.kill()
    process.wait()
    assert Path("params.yaml").read_text() == CHANGED
    name_cut_off_experiment()
    said = capsys.readouterr().err
    assert "the settings of experiment one, which was killed" in said and "--put-back" in said
    done = python(*again, environment=environment, check=True)
    assert "Experiment one was killed" in done.stdout
    all_is_as_it_was()
    name_cut_off_experiment()
    assert capsys.readouterr().err == ""


@pytest.mark.slow
def test_a_link_to_the_file_stays_one_and_line_ends_are_kept(experiment):
    Path("real.yaml").write_bytes(PARAMS.encode())
    Path("params.yaml").unlink()
    Path("params.yaml").symlink_to("real.yaml")
    process = experiment(WAITS)
    process.terminate()
    ended(process)
    assert Path("params.yaml").is_symlink()
    all_is_as_it_was()
