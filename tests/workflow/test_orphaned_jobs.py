"""Jobs of a driver that was killed are known by their names."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from cases import until

from geosd.local_jobs import DRIVER, ENDING_S, local_jobs

RUN = "0f2d9a36-5b0e-4b7e-9a55-3b8f2f6f8a10"


@pytest.fixture(scope="module")
def orphaned_jobs(root):
    spec = importlib.util.spec_from_file_location(
        "orphaned_jobs", root / "workflow/slurm/orphaned_jobs.py"
    )
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


def test_only_jobs_of_this_folder_that_a_driver_named_are_listed(orphaned_jobs, tmp_path):
    listing = "\n".join(
        [
            "slurm_load_jobs error: Unable to contact slurm controller",
            "",
            f"11|geosd-42-login-1_{RUN}|{tmp_path}",
            f"12|geosd-42-login-1_{RUN}|{tmp_path}/elsewhere",
            f"13|somebody-elses|{tmp_path}",
            f"14_[3-7]|geosd-43-login-1_{RUN}|{tmp_path}",
        ]
    )
    jobs = orphaned_jobs.parse(listing, tmp_path)
    assert jobs == [
        orphaned_jobs.Job("11", 42, "login-1"),
        orphaned_jobs.Job("14_[3-7]", 43, "login-1"),
    ]


def test_a_driver_lives_while_its_process_is_a_snakemake(orphaned_jobs):
    sleeping = [sys.executable, "-c", "import time; print(flush=True); time.sleep(60)"]
    driver = subprocess.Popen([*sleeping, "snakemake"], stdout=subprocess.PIPE)
    other = subprocess.Popen(sleeping, stdout=subprocess.PIPE)
    try:
        # A process that is being loaded has no command line yet.
        assert driver.stdout.readline() and other.stdout.readline()
        assert orphaned_jobs.Job("1", driver.pid, orphaned_jobs.this_host()).driver_lives()
        assert not orphaned_jobs.Job("1", other.pid, orphaned_jobs.this_host()).driver_lives()
    finally:
        for process in (driver, other):
            process.kill()
            process.communicate()
    assert not orphaned_jobs.Job("1", driver.pid, orphaned_jobs.this_host()).driver_lives()


def test_a_driver_on_another_machine_is_an_error(orphaned_jobs):
    with pytest.raises(RuntimeError, match="belongs to a Snakemake on login-9"):
        orphaned_jobs.Job("1", os.getpid(), "login-9").driver_lives()


def test_without_slurm_there_is_nothing_to_clear(orphaned_jobs, monkeypatch):
    monkeypatch.setenv("PATH", "")
    orphaned_jobs.cancel_orphans()


@pytest.fixture
def slurm(tmp_path, monkeypatch):
    """Stands in for SLURM; the folder holds what squeue lists, and the commands that were run."""
    folder = tmp_path / "slurm"
    folder.mkdir()
    for name, does in {"squeue": f"cat {folder}/listing", "scancel": ":"}.items():
        (folder / name).write_text(f'#!/bin/sh\necho {name} "$@" >> {folder}/commands\n{does}\n')
        (folder / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")
    monkeypatch.chdir(tmp_path)
    return folder


def test_a_driver_that_ends_cancels_its_own_jobs_and_none_that_is_cancelled(
    orphaned_jobs, slurm, tmp_path
):
    host = orphaned_jobs.this_host()
    drivers = [("11", f"42-{host}"), ("12", f"43-{host}"), ("13", "42-else"), ("14", f"42-{host}")]
    lines = [f"{number}|geosd-{driver}_{RUN}|{tmp_path}\n" for number, driver in drivers]
    lines.append(f"15|geosd-42-{host}_{RUN}|{tmp_path.parent}\n")
    (slurm / "listing").write_text("".join(lines))
    orphaned_jobs.clear_driver(42)
    squeue, *cancelled = (slurm / "commands").read_text().splitlines()
    assert "--states=PENDING,RUNNING" in squeue
    assert cancelled == ["scancel 11 14"]


def test_a_driver_that_ends_without_jobs_cancels_nothing(orphaned_jobs, slurm):
    (slurm / "listing").write_text("")
    orphaned_jobs.clear_driver(42)
    assert "scancel" not in (slurm / "commands").read_text()


def test_the_profiles_names_are_the_ones_that_are_looked_for(orphaned_jobs, root, monkeypatch):
    from snakemake.profiles import ProfileConfigFileParser

    monkeypatch.chdir(root)
    with (root / "profiles/slurm/config.yaml").open() as profile:
        prefix = ProfileConfigFileParser().parse(profile)["slurm-jobname-prefix"]
    [job] = orphaned_jobs.parse(f"1|{prefix}_{RUN}|{root}", root)
    assert job == orphaned_jobs.Job("1", os.getpid(), orphaned_jobs.this_host())


def deafen() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)


@pytest.mark.parametrize("before", [None, deafen])
def test_a_driver_is_found_and_ended_without_jobs_and_without_slurm(
    orphaned_jobs, tmp_path, before, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", "")
    code = "import time; time.sleep(60)"
    words = [sys.executable, "-c", code, "--profile", "slurm"]
    (tmp_path / "snakemake").symlink_to(sys.executable)
    driver = subprocess.Popen([tmp_path / "snakemake", *words[1:]], cwd=tmp_path, preexec_fn=before)
    inside_a_job = subprocess.Popen([tmp_path / "snakemake", *words[1:3]], cwd=tmp_path)
    try:
        assert orphaned_jobs.drivers(tmp_path) == {driver.pid}
        assert driver.pid not in orphaned_jobs.drivers(tmp_path.parent)
        orphaned_jobs.stop_everything()
        assert driver.wait(5) != 0
    finally:
        for process in (driver, inside_a_job):
            process.kill()
            process.communicate()


SAVES = """
import pathlib, signal, sys, time
here = pathlib.Path.cwd()
def save(*_):
    (here / "saved").touch()
    sys.exit(75)
signal.signal(signal.SIGTERM, save)
(here / "ready").touch()
time.sleep(600)
"""
IGNORES = """
import pathlib, signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
(pathlib.Path.cwd() / "ready").touch()
time.sleep(600)
"""


@pytest.fixture
def job(root, tmp_path, monkeypatch):
    """Start, as a Snakemake that is gone by now, the shell of a job around a program."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", "/usr/bin:/bin")  # without SLURM
    started = []

    def start(program: str, launched: bool) -> subprocess.Popen:
        (tmp_path / "program.py").write_text(program)
        launcher = [str(root / "workflow/scripts/launch.py"), "--gpus", "0", "--scratch", "s", "--"]
        words = [
            sys.executable,
            *(launcher if launched else []),
            *([sys.executable] if launched else []),
            "program.py",
        ]
        shell = f"set -euo pipefail; {' '.join(words)} > log 2>&1; touch made"
        environment = {**os.environ, DRIVER: "1", "PYTHONPATH": str(root / "src")}
        process = subprocess.Popen(["bash", "-c", shell], env=environment, start_new_session=True)
        started.append(process)
        until((tmp_path / "ready").exists, process)
        return process

    yield start
    for process in started:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


@pytest.mark.parametrize("launched", [True, False])
def test_make_stop_ends_a_local_job_whose_driver_was_killed_and_it_saves_its_state(
    orphaned_jobs, job, tmp_path, capsys, launched
):
    process = job(SAVES, launched)
    began = time.monotonic()
    orphaned_jobs.stop_everything()
    assert time.monotonic() - began < ENDING_S
    assert process.wait(5) == 75
    assert Path("saved").exists() and not Path("made").exists()
    line = capsys.readouterr().out.splitlines()[0]
    assert line.startswith("Ended: ") and "program.py" in line
    assert not local_jobs(tmp_path)


def test_a_local_job_that_does_not_end_is_killed_with_what_it_started(
    orphaned_jobs, job, tmp_path, capsys, monkeypatch
):
    process = job(IGNORES, launched=True)
    monkeypatch.setattr("geosd.local_jobs.ENDING_S", 0.5)
    orphaned_jobs.stop_everything()
    assert process.wait(5) != 0 and not local_jobs(tmp_path)
    assert capsys.readouterr().out.startswith("Killed after ")


def test_jobs_of_another_folder_and_of_slurm_are_left_alone(
    orphaned_jobs, tmp_path, monkeypatch, capsys
):
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    (tmp_path / "other").mkdir()
    sleep = ["sleep", "60"]
    elsewhere = subprocess.Popen(sleep, cwd=tmp_path / "other", env={DRIVER: "1"})
    slurm = subprocess.Popen(sleep, cwd=tmp_path, env={DRIVER: "1", "SLURM_JOB_ID": "7"})
    unknown = subprocess.Popen(sleep, cwd=tmp_path, env={})
    monkeypatch.chdir(tmp_path)
    try:
        orphaned_jobs.stop_everything()
        assert [process.poll() for process in (elsewhere, slurm, unknown)] == [None] * 3
        assert capsys.readouterr().out.endswith("Nothing was at work in this folder.\n")
    finally:
        for process in (elsewhere, slurm, unknown):
            process.kill()
            process.wait()


def test_make_clean_removes_nothing_beside_a_job_or_in_a_locked_folder(job, root, tmp_path):
    environment = {**os.environ, "PYTHONPATH": str(root / "src")}

    def make(target: str) -> subprocess.CompletedProcess[str]:
        command = ["make", "--no-print-directory", "-f", root / "Makefile", "-I", root, target]
        for name in ("dev.mk", "workflow", ".venv"):
            with contextlib.suppress(FileExistsError):
                (tmp_path / name).symlink_to(root / name)
        return subprocess.run(command, env=environment, capture_output=True, text=True)

    (tmp_path / "scratch/x").mkdir(parents=True)
    job(SAVES, launched=True)
    refused = make("clean")
    assert refused.returncode and "Hint: wait for the end, or `make stop`" in refused.stderr
    assert (tmp_path / "scratch/x").exists()
    stopped = make("stop")
    assert stopped.returncode == 0 and stopped.stdout.startswith("Ended: "), stopped
    lock = tmp_path / ".snakemake/locks/0.input.lock"
    lock.parent.mkdir(parents=True)
    lock.touch()
    assert make("clean").returncode and (tmp_path / "scratch/x").exists()
    stopped = make("stop")
    assert stopped.stdout.endswith("The folder is unlocked.\n") and not lock.exists()
    assert make("stop").stdout.endswith("Nothing was at work in this folder.\n")
    done = make("clean")
    assert done.returncode == 0, done.stderr
    assert not (tmp_path / "scratch").exists()


def test_make_clean_empties_a_folder_on_another_disk_and_keeps_the_link(root, tmp_path):
    disk, project = tmp_path / "disk", tmp_path / "project"
    (disk / "train").mkdir(parents=True)
    project.mkdir()
    (project / "scratch").symlink_to(disk)
    (project / "dev.mk").symlink_to(root / "dev.mk")
    command = ["make", "--no-print-directory", "-f", root / "Makefile", "clean"]
    subprocess.run(command, cwd=project, check=True, capture_output=True)
    assert (project / "scratch").is_symlink() and not list(disk.iterdir())
