"""The driver schedules jobs when one ends, and after a failure looks for jobs of its own."""

from __future__ import annotations

import os
from dataclasses import replace

import pytest

JOBS = 10
SNAKEFILE = f"""
keep_configuration = say_edits = lambda: None  # of start.smk and common.smk

include: "workflow/slurm/driver.smk"

rule all:
    input: [f"done/{{number}}" for number in range({JOBS})]

rule one:
    output: "done/{{number}}"
    shell: "sleep 0.6; touch {{output}}"
"""


@pytest.fixture
def tiny(untouched, root, tmp_path):
    (tmp_path / "Snakefile").write_text(SNAKEFILE)
    (tmp_path / "workflow").mkdir()
    (tmp_path / "workflow/slurm").symlink_to(root / "workflow/slurm")
    (tmp_path / "src").symlink_to(root / "src")  # of which orphaned_jobs.py imports
    return replace(untouched, folder=tmp_path)


def test_ready_jobs_are_looked_at_when_a_job_ends_and_not_by_the_clock(tiny):
    printed = tiny.snakemake("--cores", "1", "--scheduler", "greedy", "--verbose")
    assert JOBS <= printed.count("Ready jobs:") <= JOBS + 2


@pytest.mark.parametrize("fails", [False, True])
def test_a_run_that_does_not_succeed_looks_for_jobs_of_its_own(tiny, monkeypatch, fails):
    squeue = tiny.folder / "bin/squeue"
    squeue.parent.mkdir()
    squeue.write_text(f'#!/bin/sh\necho "$@" >> {tiny.folder}/squeue_calls\n')
    squeue.chmod(0o755)
    monkeypatch.setenv("PATH", f"{squeue.parent}:{os.environ['PATH']}")
    if fails:
        tiny.edit("Snakefile", "sleep 0.6", "false")
    tiny.snakemake("--cores", "1", "done/0", check=False)
    squeue_calls = (tiny.folder / "squeue_calls").read_text()
    assert squeue_calls.count("--states=PENDING,RUNNING") == fails
