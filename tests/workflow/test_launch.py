"""How a program with a resume state is started and stopped: on its GPUs, alone, by a signal."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from cases import until


@pytest.fixture(scope="module")
def path(root) -> Path:
    return root / "workflow/scripts/launch.py"


@pytest.fixture(scope="module")
def launch(path):
    spec = importlib.util.spec_from_file_location("launch", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def started(path, tmp_path):
    """Start a launcher around a Python program; what is still alive at the end is killed."""
    running = []

    def start(program: str, *arguments: str) -> subprocess.Popen:
        command = [sys.executable, str(path), "--gpus", "0", "--scratch", str(tmp_path), *arguments]
        file = tmp_path / "program.py"
        file.write_text(program)
        process = subprocess.Popen(
            [*command, "--", sys.executable, str(file)], stderr=-1, text=True
        )
        running.append(process)
        return process

    yield start
    for process in running:
        process.kill()
        process.wait()


SAVES_ON_SIGTERM = """
import pathlib, signal, sys, time
here = pathlib.Path(__file__).parent
def save(*_):
    (here / "saved").touch()
    sys.exit(9)
signal.signal(signal.SIGTERM, save)
(here / "ready").touch()
time.sleep(60)
"""


@pytest.mark.parametrize(
    ("requested", "visible", "job", "message"),
    [
        (4, "0,1", None, "asked for 4 GPUs and this machine shows it 2"),
        (1, "0,1", "17", "asked for 1 GPUs and SLURM job 17 shows it 2"),
        (1, "", "17", "asked for 1 GPUs and SLURM job 17 shows it 0"),
    ],
)
def test_other_gpus_than_requested_stop_the_start(launch, requested, visible, job, message):
    environment = {"CUDA_VISIBLE_DEVICES": visible} | ({"SLURM_JOB_ID": job} if job else {})
    with pytest.raises(SystemExit, match=message):
        launch.check_gpus(requested, environment)


@pytest.mark.parametrize(
    ("requested", "visible", "job"), [(2, "0,3", "17"), (0, "", "17"), (1, "0,1", "")]
)
def test_the_requested_gpus_are_enough(launch, requested, visible, job):
    launch.check_gpus(requested, {"CUDA_VISIBLE_DEVICES": visible, "SLURM_JOB_ID": job})


def test_one_process_is_the_program_itself_and_several_are_started_by_accelerate(launch):
    program = ["python", "-m", "some.module", "--seed", "1"]
    assert launch.command(1, program) == program
    several = launch.command(4, program)
    assert several[:3] == ["python", "-m", "accelerate.commands.launch"]
    assert several[several.index("--num_processes") + 1] == "4"
    assert several[-4:] == program[1:]


def test_each_node_of_several_starts_its_processes_and_meets_the_others_on_the_first(
    launch, tmp_path, monkeypatch
):
    scontrol = tmp_path / "scontrol"
    scontrol.write_text("#!/bin/sh\nprintf 'gpu03\\ngpu04\\n'\n")
    scontrol.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    task = {"SLURM_JOB_NODELIST": "gpu[03-04]", "SLURM_NODEID": "1"}
    node = launch.this_node(2, 4711, task)
    assert node == (2, 1, "gpu03", 4711)
    words = launch.command(12, ["python", "-m", "some.module"], node)
    options = dict(zip(words[words.index("--same_network") + 1 :: 2], words[6::2], strict=False))
    assert options.items() >= {
        ("--num_processes", "12"),
        ("--num_machines", "2"),
        ("--machine_rank", "1"),
        ("--main_process_ip", "gpu03"),
        ("--main_process_port", "4711"),
    }
    srun = launch.on_every_node(2, 6, ["--gpus", "6"])
    assert srun[0] == "srun" and srun[-2:] == ["--gpus", "6"]
    assert {"--nodes=2", "--ntasks=2", "--ntasks-per-node=1", "--gres=gpu:6"} <= set(srun)
    assert int(srun[srun.index("--port") + 1]) > 0


def test_sigterm_reaches_the_program_and_its_status_comes_back(started, tmp_path):
    launcher = started(SAVES_ON_SIGTERM)
    until((tmp_path / "ready").exists)
    launcher.send_signal(signal.SIGTERM)
    assert launcher.wait(30) == 9
    assert (tmp_path / "saved").exists()
    events = [json.loads(line) for line in (tmp_path / "attempts.jsonl").read_text().splitlines()]
    assert [event["event"] for event in events] == ["start", "end"]
    assert events[1]["status"] == 9


def test_a_second_start_on_the_same_state_is_refused_until_the_first_has_ended(started, tmp_path):
    first = started(SAVES_ON_SIGTERM)
    until((tmp_path / "ready").exists)
    second = started(SAVES_ON_SIGTERM)
    _, stderr = second.communicate(timeout=30)
    assert second.returncode == 1
    assert f"another process is at work on this; `fuser {tmp_path}/lock` names" in stderr
    first.terminate()
    first.wait(30)
    assert started("print('alone')").wait(30) == 0


def test_the_state_stays_taken_while_the_program_outlives_a_killed_launcher(started, tmp_path):
    program = SAVES_ON_SIGTERM.replace('"ready").touch()', '"ready").write_text(str(os.getpid()))')
    first = started("import os\n" + program)
    until((tmp_path / "ready").exists)
    time.sleep(0.1)
    orphan = int((tmp_path / "ready").read_text())
    first.kill()
    first.wait()
    try:
        second = started("print('two')")
        _, stderr = second.communicate(timeout=30)
        assert second.returncode == 1
        assert f"another process is at work on this; `fuser {tmp_path}/lock` names" in stderr
    finally:
        os.kill(orphan, signal.SIGKILL)


@pytest.mark.slow
def test_several_processes_start_once_each_and_all_get_the_signal_to_save(started, tmp_path):
    ranks = SAVES_ON_SIGTERM.replace("import pathlib", "import os, pathlib")
    ranks = ranks.replace('"saved"', '("saved" + os.environ["RANK"])')
    ranks = ranks.replace('"ready"', '("ready" + os.environ["RANK"])')
    launcher = started(ranks, "--processes", "2")
    for rank in "01":
        until((tmp_path / f"ready{rank}").exists)
    launcher.send_signal(signal.SIGTERM)
    assert launcher.wait(60) != 0
    assert {path.name for path in tmp_path.glob("saved*")} == {"saved0", "saved1"}


def test_every_rule_with_a_resume_state_is_told_ahead_of_its_time_limit(root):
    told = re.findall(
        r"^  (\w+): \{slurm_extra: \"'--signal=TERM@300[' ]",
        (root / "profiles/slurm/config.yaml").read_text(),
        re.M,
    )
    rules = "".join(path.read_text() for path in (root / "workflow/rules").glob("*.smk"))
    texts = re.split(r"^(?=rule|use rule|def )", rules, flags=re.M)
    resumed = {text.split()[1].rstrip(":") for text in texts if "  scratch=" in text}
    resumed |= {
        new for old, new in re.findall(r"^use rule (\w+) as (\w+)", rules, re.M) if old in resumed
    }
    assert sorted(told) == sorted(resumed) and {"train", "pool", "evaluate_pi_0"} <= resumed
