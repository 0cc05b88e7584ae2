"""Jobs of a driver that was killed are known by their names."""

from __future__ import annotations

import importlib.util
import os
import signal
import subprocess
import sys

import pytest

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
        orphaned_jobs.cancel_orphans(everything=True)
        assert driver.wait(5) != 0
    finally:
        for process in (driver, inside_a_job):
            process.kill()
            process.communicate()
