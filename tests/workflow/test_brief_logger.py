"""What `make run` and `make plan` show of Snakemake: a live line, a line a job, errors whole."""

from __future__ import annotations

import importlib
import logging
import os
import subprocess
import sys
from types import SimpleNamespace

import pytest

SNAKEFILE = """
rule all:
    input: "b.txt"

rule first:
    output: "a.txt"
    log: "first.log"
    params: [["a setting"] * 99]
    message: "Train the student"
    shell: "echo '50%|## | 5/10 [00:12<00:20, 3.2it/s, loss 0.0123]' > {log}; sleep 3; touch a.txt"

rule second:
    input: "a.txt"
    output: "b.txt"
    log: "second.log"
    message: "Sample the student"
    shell: "echo no samples here > {log}; test -e allowed && touch {output}"
"""


@pytest.fixture
def logger(root, monkeypatch):
    monkeypatch.syspath_prepend(root / "workflow/logger")
    return importlib.import_module("snakemake_logger_plugin_brief")


@pytest.fixture(scope="module")
def snakemake(root, tmp_path_factory):
    folder = tmp_path_factory.mktemp("brief")
    (folder / "Snakefile").write_text(SNAKEFILE)

    def run(*arguments: str, **environment: str) -> tuple[int, str]:
        words = "--cores 1 --quiet host reason --show-failed-logs --logger brief".split()
        path = {"PYTHONPATH": str(root / "workflow/logger"), "COLUMNS": "300"}
        done = subprocess.run(
            [sys.executable, "-m", "snakemake", *arguments, *words],
            cwd=folder,
            env={**os.environ, **path, **environment},
            capture_output=True,
            text=True,
        )
        return done.returncode, done.stdout + done.stderr

    run.folder = folder
    return run


@pytest.mark.slow
def test_a_plan_a_failing_run_and_a_run_that_goes_on(snakemake):
    status, plan = snakemake("--dry-run")
    assert status == 0
    assert [line for line in plan.splitlines() if "student" in line] == [
        "Train the student (missing output files)",
        "Sample the student (missing output files, input files updated by another job)",
    ]
    assert "a setting" not in plan
    assert "2 jobs would run." in plan

    status, shown = snakemake(TTY_COMPATIBLE="1")  # rich redraws the line as in a terminal
    assert status != 0
    assert "0/3 jobs" in shown
    assert "Train the student: 5/10, loss 0.0123" in shown
    assert "Error in rule second" in shown
    assert "no samples here" in shown
    assert "1 of 3 jobs done" in shown
    (log,) = (snakemake.folder / ".snakemake/log").glob("*.log")
    assert "Finished jobid" in log.read_text()

    (snakemake.folder / "allowed").touch()
    status, shown = snakemake()
    assert status == 0
    assert "1/2 jobs" in shown
    assert "\x1b" not in shown

    status, shown = snakemake()
    assert status == 0
    assert "No job to run." in shown


def test_how_far_a_job_is_is_its_last_bar(logger, tmp_path):
    log = tmp_path / "0.log"
    assert logger.far([log]) == ""
    log.write_text("start\n")
    assert logger.far([log]) == ""
    log.write_text(
        " 10%|# | 1/10 [00:01<00:09, 1.00it/s, loss 2.0000]\r"
        " 20%|## | 2/10 [00:02<00:08, 1.00it/s, loss 1.5000]\r\n\x1b[A"
    )
    assert logger.far([log]) == ": 2/10, loss 1.5000"
    log.write_text("pool of m:  58%|█████▊    | 11/19 [00:21<00:15,  1.89s/it]")
    assert logger.far([log]) == ": 11/19"


def test_time_left_is_that_of_the_jobs_of_each_rule_over_those_side_by_side(logger):
    def left(running, seconds, now=100.0):
        return logger.seconds_left(
            {"train": 4, "sample": 2, "all": 1}, seconds, running, begin=0.0, now=now
        )

    def job(rule, start):
        return logger.RunningJob(rule, rule, (), start)

    assert left([], {}) is None
    # One after another: three trainings and two samplings, which take the mean until one has ended.
    assert left([], {"train": [100.0]}) == pytest.approx(3 * 100 + 2 * 100)
    # Two at a time, 200 seconds of work in 100: two trainings are half done, none has to wait.
    running = [job("train", 50.0), job("train", 50.0)]
    assert left(running, {"train": [50.0, 50.0], "sample": []}) == pytest.approx((2 * 50) / 2)
    # A job that takes longer than others did is about to end.
    assert left([job("sample", 10.0)], {"train": [1.0] * 4, "sample": [5.0]}) == 0


def test_a_reason_is_given_without_the_files_and_settings(logger):
    long = (
        "Missing output files: a, b; Code has changed since last execution; "
        "Params have changed since last execution: before: {'x': 1; 2}, now: {'y': 2}"
    )
    assert logger.short_reason(long) == (
        "missing output files, code has changed since last execution,"
        " params have changed since last execution"
    )


def test_a_message_that_cannot_be_shown_ends_no_run(logger, capsys):
    handler = logger.LogHandler(SimpleNamespace(dryrun=False), None)
    record = logging.LogRecord("", logging.INFO, "", 0, "", (), None)
    record.event = logger.LogEvent.JOB_FINISHED  # without the id of its job
    handler.emit(record)
    assert "AttributeError" in capsys.readouterr().err
