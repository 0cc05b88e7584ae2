"""A logger of Snakemake for people: a live line for each running job, one line a job in a dry run.

    PYTHONPATH=workflow/logger snakemake --logger brief ...

Errors are shown whole, with the log of the job that failed. Everything else that Snakemake says
is in its own file under .snakemake/log, and what a job says in its log under logs/.
"""

import logging
import re
import shlex
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from statistics import fmean

from rich.console import Console, Group
from rich.live import Live
from rich.text import Text
from snakemake_interface_logger_plugins.base import LogHandlerBase
from snakemake_interface_logger_plugins.common import LogEvent

from geosd.terminal import print_with_replacements

LAST_BYTES = 4096
"""Of a running job's log that are read each second."""
ERROR_BYTES = 1 << 16
"""Of a failed job's log that are searched for the error."""
BAR = re.compile(
    r"[^\n|]*\|[^\n|]*\| *[\d.]+\w*/[\d.?]+\w* \[[^\]\n]*\]?|[^\n\[]*\d+it \[[^\]\n]*\]"
)
"""A progress bar of tqdm, with a total or without; an error may stand behind it on its line."""
IGNORED = re.compile(
    r"^Exception ignored [^\n]*\n(?:Traceback[^\n]*\n(?:[ \t][^\n]*\n)*[^\n]*\n?)?", re.MULTILINE
)
"""Python's words on objects that could not be put away at the end of a failed program."""
EVERY_SECONDS = 60
"""How often the lines are repeated where no terminal can redraw them."""
SHOWN_JOBS = 6
"""Running jobs that have a line each; the others are counted."""
LOCKED = (
    "This folder is locked: another Snakemake is at work in it, or was killed in it.\nHint: wait"
    " for the one at work; `make stop` ends it where it is not wanted, and unlocks the folder."
)
READ_ONLY = re.compile(r"(?:PermissionError|OSError): \[Errno (?:13|30)\] .*")
NEWER_INPUT = re.compile(r"has older modification time \([^)]*\) than input (.+?) \(\d{4}-")
"""Snakemake's words about a file of the future, as one from a machine with another clock."""
TARGETS = {"all", "tables", "figures"}
"""Rules that run nothing."""


@dataclass(frozen=True)
class RunningJob:
    """A job that has started: its rule, its message, its logs, and when (Unix time)."""

    rule: str
    message: str
    logs: tuple[Path, ...]
    start: float


class LogHandler(LogHandlerBase):
    """Shows how far Snakemake is, or what it would do."""

    writes_to_stream = True
    writes_to_file = False
    has_filter = False
    has_formatter = False
    needs_rulegraph = False

    def __post_init__(self) -> None:
        """Count nothing yet."""
        print_with_replacements()
        self.console = Console(highlight=False)
        self.begin = time.time()
        self.done, self.total, self.failed = 0, 0, False
        self.jobs: dict[str, int] = {}
        self.running: dict[int, RunningJob] = {}
        self.errors: list[str] = []
        self.seconds: defaultdict[str, list[float]] = defaultdict(list)
        self.ended = threading.Event()
        self.live = Live(
            get_renderable=self._lines, console=self.console, refresh_per_second=1, transient=True
        )

    def emit(self, record: logging.LogRecord) -> None:
        """Take up one message of Snakemake."""
        try:
            self._take(record)
        except Exception:  # as every handler of logging: what is shown must not end a run
            self.handleError(record)

    def _take(self, record: logging.LogRecord) -> None:
        event = getattr(record, "event", None)
        if record.levelno >= logging.WARNING:
            self.failed |= record.levelno >= logging.ERROR
            self.console.print(self._plain(self.format(record)), markup=False, soft_wrap=True)
        if event == LogEvent.RUN_INFO:
            self._take_counts(record)
        elif event == LogEvent.JOB_INFO and self.common_settings.dryrun:
            if record.rule_name not in TARGETS:
                words = f"{record.rule_msg or record.rule_name} ({short_reason(record.reason)})"
                self.console.print(words, markup=False, soft_wrap=True)
        elif event == LogEvent.JOB_INFO:
            words, logs = record.rule_msg or record.rule_name, tuple(map(Path, record.log))
            self.running[record.jobid] = RunningJob(record.rule_name, words, logs, record.created)
        elif event == LogEvent.JOB_FINISHED:
            if job := self.running.pop(record.job_id, None):
                self.seconds[job.rule].append(record.created - job.start)
        elif event == LogEvent.JOB_ERROR:
            if job := self.running.pop(record.jobid, None):
                self.errors += [f"{job.rule} failed, {log}:\n{last_error(log)}" for log in job.logs]
        elif event == LogEvent.PROGRESS:
            self.done, self.total = record.done, record.total
            if not self.console.is_terminal:
                self.console.print(self._lines())

    def _plain(self, error: str) -> str:
        """An error, its hint last; of Snakemake's own those with no cure here in our words."""
        if "Directory cannot be locked" in error:
            return LOCKED
        if not self.jobs and (refused := READ_ONLY.search(error)):
            return f"{refused[0]}\nHint: Snakemake writes here; run in a clone of your own."
        if newer := NEWER_INPUT.search(error):
            file = shlex.quote(newer[1])
            return f"{error.rstrip()}\nHint: `touch {file}` gives the input the time of today."
        return re.sub(r"(\nHint: .*)(?:\n +File .*)+\s*$", r"\1", error)

    def _take_counts(self, record: logging.LogRecord) -> None:
        first = not self.jobs
        self.jobs = {rule: n for rule, n in record.stats.items() if rule != "total"}
        self.total = sum(self.jobs.values())
        if first and not self.common_settings.dryrun:
            self.live.start()
            if not self.console.is_terminal:
                threading.Thread(target=self._repeat, daemon=True).start()

    def _repeat(self) -> None:
        while not self.ended.wait(EVERY_SECONDS):
            self.console.print(self._lines())

    def _lines(self) -> Group:
        """Jobs done, time passed and left; a line for each running job, whose name may be cut."""
        now, running = time.time(), list(self.running.values())
        words = [f"{self.done}/{self.total} jobs", clock(now - self.begin)]
        left = seconds_left(self.jobs, self.seconds, running, self.begin, now)
        if left is not None and self.done < self.total:
            words.append(f"about {clock(left)} left")
        lines = [Text(" · ".join(words))]
        for job in running[:SHOWN_JOBS]:
            progress, name = far(job.logs), Text(f"  {job.message}")
            name.truncate(max(20, self.console.width - len(progress)), overflow="ellipsis")
            lines.append(name.append(progress))
        if len(running) > SHOWN_JOBS:
            lines.append(Text(f"  and {len(running) - SHOWN_JOBS} more"))
        for line in lines:
            line.no_wrap, line.overflow = True, "ellipsis"
        return Group(*lines)

    def close(self) -> None:
        """Take the lines away, and say what came of all."""
        if self.ended.is_set():
            return
        self.ended.set()
        self.live.stop()
        if not self.jobs:
            if not self.failed:  # else the error was the last word
                self.console.print("No job to run.")
        elif self.common_settings.dryrun:
            self.console.print(f"{self.total} jobs would run.")
        else:
            passed = clock(time.time() - self.begin)
            self.console.print(f"{self.done} of {self.total} jobs done in {passed}.")
            for words in self.errors:  # again, after all that Snakemake said of them
                self.console.print(words, markup=False, soft_wrap=True)
        super().close()


def seconds_left(
    jobs: Mapping[str, int],
    seconds: Mapping[str, list[float]],
    running: Iterable[RunningJob],
    begin: float,
    now: float,
) -> float | None:
    """How long the jobs that are left will take: as long each as those of its rule took.

    The jobs of a rule without an ended job take the mean time of all ended jobs. The number of jobs
    that run side by side stays at its average so far. None before any job has ended.

    Args:
        jobs: How many jobs each rule has in all.
        seconds: How long each job took that has ended, by rule.
        begin: When the first job started; Unix time, as `now`.
    """
    ended = [value for values in seconds.values() for value in values]
    if not ended or now <= begin:
        return None
    mean = {rule: fmean(seconds[rule]) if seconds.get(rule) else fmean(ended) for rule in jobs}
    passed = [(job.rule, now - job.start) for job in running]
    started = Counter(rule for rule, _ in passed)
    waiting = {rule: n - len(seconds.get(rule, ())) - started[rule] for rule, n in jobs.items()}
    work = sum(n * mean[rule] for rule, n in waiting.items() if rule not in TARGETS)
    work += sum(max(0.0, mean.get(rule, 0.0) - value) for rule, value in passed)
    side_by_side = (sum(ended) + sum(value for _, value in passed)) / (now - begin)
    return work / max(1.0, side_by_side)


def far(logs: Iterable[Path]) -> str:
    """How far a job is, from the last progress bar of tqdm in its logs: `: 34/100, loss 0.0123`."""
    for log in logs:
        # 34%|███▍      | 34/100 [00:12<00:20,  3.20it/s, loss 0.0123]
        bars = re.findall(r"\| *(\d+/\d+) \[[^,\]]*,[^,\]]*(, [^\]]*)?\]", tail(log))
        if bars:
            return ": " + "".join(bars[-1])
    return ""


def last_error(log: Path) -> str:
    """The error that a job's log ends with, its hint last; without one its last lines.

    Progress bars are no part of an error, whether they stand before it, behind it or after it.
    """
    text = BAR.sub("", IGNORED.sub("", tail(log, ERROR_BYTES).replace("\r", "\n")))
    text = "\n".join(line for line in text.splitlines() if line.strip())
    begins = [error.start(1) for error in re.finditer(r"^[\w.]*?(\w+Error\b)", text, re.MULTILINE)]
    if begins:
        return text[begins[-1] :]
    lines = text.splitlines()
    hints = [number for number, line in enumerate(lines) if line.startswith("Hint: ")]
    first = hints[-1] - 1 if hints else len(lines) - 2
    return "\n".join(lines[max(0, first) :])


def tail(log: Path, length: int = LAST_BYTES) -> str:
    """The end of a log; empty where there is none."""
    if not log.exists():
        return ""
    with log.open("rb") as file:
        file.seek(max(0, log.stat().st_size - length))
        return file.read().decode("utf-8", errors="replace")


def short_reason(reason: str) -> str:
    """Why a job runs, in a few words: `Missing output files`, without the files and settings."""
    heads = [part.split(":")[0] for part in re.split(r"; (?=[A-Z])", reason)]
    return ", ".join(heads).lower()


def clock(seconds: float) -> str:
    """A time as h:mm:ss."""
    return str(timedelta(seconds=int(seconds)))
