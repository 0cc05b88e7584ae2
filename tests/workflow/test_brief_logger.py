"""What `make run` and `make plan` show of Snakemake: a live line, a line a job, errors whole."""

from __future__ import annotations

import importlib
import io
import logging
import os
import signal
import subprocess
import sys
from types import SimpleNamespace

import pytest
from cases import python, until

SNAKEFILE = """
rule all:
    input: "b.txt"

rule first:
    output: "a.txt"
    log: "first.log"
    params: [["a setting"] * 99]
    message: "Train the student"
    shell:
        "echo '50%|## | 5/10 [00:12<00:20, 3.2it/s, loss 0.0123]' > {log}; sleep ${{NAP:-3}};"
        " touch a.txt"

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
        done = python(
            "-m", "snakemake", *arguments, *words, environment=path | environment, cwd=folder
        )
        return done.returncode, done.stdout + done.stderr

    run.folder = folder
    return run


def test_the_error_of_a_job_ends_with_its_hint(logger, tmp_path):
    log = tmp_path / "a.log"
    assert logger.last_error(log) == ""
    log.write_text(
        "Traceback:\n  raise\nValueError: a\n\nTraceback:\ngeosd.x.BadError: b\nHint: c\n"
    )
    assert logger.last_error(log) == "BadError: b\nHint: c"
    log.write_text("one\nNo such study.\nHint: another\n")
    assert logger.last_error(log) == "No such study.\nHint: another"


FULL = "scratch/x/000002.jsonl: [Errno 28] the disk is full (No space left on device)."
QUOTA = "[Errno 122] Disk quota exceeded: 'scratch/x/state.pt'"
BARS = [
    "pool of mini-qwen3:   0%|          | 0/7 [00:00<?, ?it/s]",
    "pool of mini-qwen3:  29%|##8       | 2/7 [00:02<00:05,  1.03s/it]",
    " 34%|███▍      | 34/100 [00:12<00:20,  3.20it/s, loss 0.0123]",
    "model.safetensors: 100%|██████████| 1.2G/1.2G [00:10<00:00, 120MB/s]",
    "12it [00:03,  4.00it/s]",
]
DESTRUCTOR = """Exception ignored in: <function Repo.__del__ at 0x7f>
Traceback (most recent call last):
  File "repo.py", line 3, in __del__
    self.close()
OSError: [Errno 9] Bad file descriptor
"""


@pytest.mark.parametrize("bar", BARS)
@pytest.mark.parametrize("error", [FULL, QUOTA, "asked to stop after 8 of 19 samples"])
def test_no_progress_bar_hides_an_error(logger, tmp_path, bar, error):
    log = tmp_path / "a.log"
    hint = "" if error.startswith("asked") else "\nHint: make room."
    log.write_text(f"\r{BARS[0]}\r{bar}{error}{hint}\n\r{bar}\n\r{bar}" * 2, encoding="utf-8")
    assert logger.last_error(log).endswith(f"{error}{hint}")
    log.write_text(f"{error}{hint}\n" + f"\r{bar}" * 200, encoding="utf-8")
    assert logger.last_error(log) == f"{error}{hint}"


def test_what_python_says_of_destructors_hides_no_error(logger, tmp_path):
    log = tmp_path / "a.log"
    log.write_text(f"Traceback:\n  raise\nRuntimeError: iostream error\n{DESTRUCTOR * 40}")
    assert logger.last_error(log) == "RuntimeError: iostream error"


@pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
def test_a_terminal_of_another_encoding_shows_every_line(root, encoding):
    code = (
        "from types import SimpleNamespace as N; import snakemake_logger_plugin_brief as b;"
        "h = b.LogHandler(N(dryrun=False), None); h.console.print('π₀ … −1'); h.close()"
    )
    environment = {"PYTHONPATH": str(root / "workflow/logger"), "PYTHONIOENCODING": encoding}
    done = python("-c", code, environment=environment, text=False)
    assert done.returncode == 0, done.stderr
    assert b"?1\n" in done.stdout and b"No job to run." in done.stdout


@pytest.mark.slow
def test_a_plan_a_failing_run_and_a_run_that_goes_on(snakemake):
    status, plan = snakemake("--dry-run")
    assert status == 0
    assert [line for line in plan.splitlines() if "student" in line] == [
        "Train the student (missing output files)",
        "Sample the student (missing output files, input files updated by another job)",
    ]
    assert "a setting" not in plan
    assert "3 jobs would run." in plan

    status, shown = snakemake(TTY_COMPATIBLE="1")  # rich redraws the line as in a terminal
    assert status != 0
    assert "0/3 jobs" in shown
    assert "Train the student: 5/10, loss 0.0123" in shown
    assert "Error in rule second" in shown
    assert shown.rstrip().endswith("second failed, second.log:\nno samples here")
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


def test_each_of_six_running_jobs_has_a_line_of_80_columns_and_the_others_are_counted(
    logger, tmp_path
):
    """Ten jobs at once, as on a cluster, with names that are wider than the terminal."""
    log = tmp_path / "0.log"
    log.write_text("50%|## | 45/100 [00:12<00:20, 3.2it/s, loss 0.1413]")
    handler = logger.LogHandler(SimpleNamespace(dryrun=False), None)
    handler.console = logger.Console(width=80, file=io.StringIO(), force_terminal=False)
    handler.done, handler.total = 3, 21
    for seed in range(10):
        name = f"Train mini-qwen3 with geosd_no_prox at the rate of the whole grid, seed {seed}"
        handler.running[seed] = logger.RunningJob("train", name, (log,), 0.0)
    handler.console.print(handler._lines())
    lines = handler.console.file.getvalue().splitlines()
    assert lines[0].startswith("3/21 jobs · ") and lines[-1] == "  and 4 more"
    assert len(lines) == 1 + logger.SHOWN_JOBS + 1 and max(map(len, lines)) <= 80
    job = "  Train mini-qwen3 with geosd_no_prox at the rate of the w…: 45/100, loss 0.1413"
    assert set(lines[1:-1]) == {job}


def test_a_message_that_cannot_be_shown_ends_no_run(logger, capsys):
    handler = logger.LogHandler(SimpleNamespace(dryrun=False), None)
    record = logging.LogRecord("", logging.INFO, "", 0, "", (), None)
    record.event = logger.LogEvent.JOB_FINISHED  # without the id of its job
    handler.emit(record)
    assert "AttributeError" in capsys.readouterr().err


def shown(logger, capsys, *errors: str) -> str:
    """What the logger shows of errors before any job, its last word included."""
    handler = logger.LogHandler(SimpleNamespace(dryrun=False), None)
    for error in errors:
        handler.emit(logging.LogRecord("", logging.ERROR, "", 0, error, (), None))
    handler.close()
    return capsys.readouterr().out


def test_an_error_before_any_job_is_the_last_word(logger, capsys):
    error = "ConfigError in file x:\n'quik' is no study.\nHint: names are in params.yaml."
    assert (
        shown(logger, capsys, f"{error}\n  File x, line 3, in <module>\n  File y") == f"{error}\n"
    )
    assert shown(logger, capsys) == "No job to run.\n"


def test_in_a_folder_that_cannot_be_written_the_reason_is_said_and_no_traceback(logger, capsys):
    error = "PermissionError: [Errno 13] Permission denied: '/x/.snakemake'"
    words = shown(logger, capsys, f"Traceback (most recent call last):\n  File a\n{error}\n")
    assert words == f"{error}\nHint: Snakemake writes here; run in a clone of your own.\n"
    error = "OSError: [Errno 30] Read-only file system: '/x/.snakemake'"
    assert shown(logger, capsys, error).startswith(f"{error}\nHint: ")


def test_an_input_of_the_future_has_a_remedy(logger, capsys):
    error = (
        "WorkflowError:\nOutput a.csv has older modification time (2026-01-01 10:00:00) than input"
        " my samples.jsonl (2031-01-01 10:00:00). This could indicate a clock skew problem."
    )
    last = shown(logger, capsys, error).splitlines()[-1]
    assert last == "Hint: `touch 'my samples.jsonl'` gives the input the time of today."


@pytest.mark.slow
def test_a_second_run_and_a_run_after_a_kill_name_make_stop(snakemake):
    for name in "ab":
        (snakemake.folder / f"{name}.txt").unlink(missing_ok=True)
    first = subprocess.Popen(
        [sys.executable, "-m", "snakemake", "--cores", "1"],
        cwd=snakemake.folder,
        env={**os.environ, "NAP": "300"},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    locks = snakemake.folder / ".snakemake/locks"
    until(lambda: any(locks.glob("*")))
    try:
        for _ in range(2):  # beside the first, and when it was killed
            status, words = snakemake()
            assert status != 0 and "--unlock" not in words and "No job to run." not in words
            last = words.splitlines()[-1]
            assert last.startswith("Hint: ") and "`make stop`" in last
            if first.poll() is None:
                os.killpg(first.pid, signal.SIGKILL)
                first.wait()
    finally:
        if first.poll() is None:
            os.killpg(first.pid, signal.SIGKILL)
    for lock in locks.iterdir():  # by hand, as quickly
        lock.unlink()
