r"""Judge answers of the paper's benchmarks: numbers and words here, formulas in workers.

An integer gold (DAPO-Math, AIME, AMC, most of MATH-500) is compared as an integer, exactly. Any
other gold is compared as a word, as an exact number, and then by math-verify. docs/grading.md has
the conventions and how often they agree with published verdicts.

A formula can be one that no computer finishes, and sympy will try. So formulas are compared in
processes of their own: what uses up its processor time ends with its process, and the verdict
says so.
"""

from __future__ import annotations

import contextlib
import functools
import json
import os
import queue
import resource
import select
import signal
import subprocess
import sys
import time

from geosd.problems.grading import Verdict, answer_comparison
from geosd.problems.grading.answer_comparison import GraderMode, compare_exactly, is_integer
from geosd.problems.grading.answer_extraction import extract_answer
from geosd.problems.records import Reason

# Lengths are in characters. A response of the longest evaluation, 8192 tokens, has about 33,000.
LONGEST_RESPONSE = 1_000_000
# A longer answer is prose or a loop, and reading it costs more than it can bring.
LONGEST_ANSWER = 2000
# Of processor time. The slowest comparison of 3,763 published responses takes 0.7; docs/grading.md
# has what an evaluation of endless answers costs.
LIMIT_SECONDS = 2.0
# Outcomes that a pool keeps: samples of a problem repeat each other, and a long training must not
# grow by them.
REMEMBERED = 4096
START_SECONDS = 120.0
MEGABYTES = 4096


class MissingMathError(RuntimeError):
    """math-verify is not installed, and a comparison of formulas needs it."""


class _Worker:
    """One process, started at its first request and again after each end."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        # Of the clock on the wall, which also runs while a busy machine keeps a worker waiting.
        self.patience = 30 * seconds + 30
        self.process: subprocess.Popen[bytes] | None = None

    def compare(self, gold: str, answer: str) -> Reason | None:
        request = json.dumps([gold, answer]).encode() + b"\n"
        try:
            if not self._send(request):  # it died between two requests; this one is not to blame
                self.stop()
                self._send(request)
            line = self._read_line(self.patience)
        except BaseException:  # its answer would be taken for the next request's
            self.stop()
            raise
        if line.endswith(b"\n"):
            return json.loads(line)
        return "timeout" if self.stop(grace=1) == -signal.SIGPROF else "crash"

    def stop(self, grace: float = 0) -> int | None:
        """End the process; its exit status, its own where it ends within `grace` seconds."""
        if self.process is None:
            return None
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(grace)
        self.process.kill()
        self.process.communicate()
        status, self.process = self.process.returncode, None
        return status

    def _send(self, request: bytes) -> bool:
        """Whether the process, started where there is none, took the request in."""
        if self.process is None:
            self._start()
        assert self.process is not None and self.process.stdin is not None
        try:
            self.process.stdin.write(request)
            self.process.stdin.flush()
        except BrokenPipeError:
            return False
        return True

    def _start(self) -> None:
        # A session of its own: an interrupt of the parent is the parent's to handle.
        self.process = subprocess.Popen(
            [sys.executable, "-m", __name__, str(self.seconds), str(self.patience)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
            start_new_session=True,
        )
        if self._read_line(START_SECONDS) != b'"ready"\n':
            self.stop()
            raise RuntimeError(
                "a grading worker did not start.\nHint: run"
                f' `python -m {__name__} 2 90` to see why; it prints "ready".'
            )

    def _read_line(self, seconds: float) -> bytes:
        """The next line; a line without its end when the time is up or the process died."""
        assert self.process is not None and self.process.stdout is not None
        end = time.monotonic() + seconds
        descriptor = self.process.stdout.fileno()
        poll = select.poll()
        poll.register(descriptor, select.POLLIN | select.POLLHUP)
        line = b""
        while not line.endswith(b"\n") and poll.poll(max(0.0, end - time.monotonic()) * 1000):
            read = os.read(descriptor, 1 << 16)
            if not read:
                break
            line += read
        return line


class TypedGrader(contextlib.AbstractContextManager):
    r"""Grader of the paper's benchmarks: the type of a gold answer chooses the comparison.

    Formulas are compared by a pool of processes, which start when they are first needed: integers,
    fractions and words start none. Any thread may ask.

    Args:
        workers: How many processes; more threads than that wait for each other.
        seconds: Limit on one comparison, in seconds of processor time.

    Example:
        >>> with TypedGrader() as grader:
        ...     grader(r"so \boxed{x+1}", "1+x").reason
        'correct'
    """

    def __init__(self, workers: int = 1, seconds: float = LIMIT_SECONDS) -> None:
        """Start nothing yet; see the class."""
        if workers < 1 or seconds <= 0:
            raise ValueError(
                f"{workers} workers with {seconds} seconds each; allowed are at least 1 worker and"
                " more than 0 seconds.\nHint: 2 seconds are the default."
            )
        self._workers = [_Worker(seconds) for _ in range(workers)]
        self._idle: queue.SimpleQueue[_Worker] = queue.SimpleQueue()
        for worker in self._workers:
            self._idle.put(worker)
        self._outcome = functools.lru_cache(REMEMBERED)(self._compare)

    def __call__(self, response: str, gold: str) -> Verdict:
        """Judge a response by the final answer that it states; see `grade_response`."""
        return grade_response(response, gold, self)

    def compare(self, gold: str, answer: str) -> Reason:
        """Compare an answer with the gold answer in a worker process; see `answer_comparison`.

        Raises:
            MissingMathError: Only formulas can decide, and math-verify is not installed.
        """
        outcome = self._outcome(gold, answer)
        if outcome is None:
            raise MissingMathError(
                f"the gold answer {gold[:80]!r} is a formula; comparing it needs math-verify,"
                " which is not installed.\nHint: pip install 'geosd[math]'; integer answers need"
                " nothing."
            )
        return outcome

    def close(self) -> None:
        """End the worker processes of this grader."""
        for worker in self._workers:
            worker.stop()

    def __exit__(self, *_: object) -> None:
        """End the processes."""
        self.close()

    def _compare(self, gold: str, answer: str) -> Reason | None:
        worker = self._idle.get()
        try:
            return worker.compare(gold, answer)
        finally:
            self._idle.put(worker)


def grade_response(
    response: str,
    gold: str,
    pool: TypedGrader,
    *,
    grader: GraderMode = "auto",
    guess: bool = False,
) -> Verdict:
    """Judge a response by the final answer that it states and by the gold answer's type.

    Args:
        response: Its text, without special tokens; above `LONGEST_RESPONSE` it is unreadable.
        gold: The right answer; above `LONGEST_ANSWER` nothing can be compared with it.
        pool: Compares formulas in processes of its own, under a limit.
        grader: `auto`: by the gold's type; `symbolic`: answers to integer golds that are no number
            are compared as formulas too.
        guess: Whether the last formula or number counts where no answer is stated.
    """
    if len(response) > LONGEST_RESPONSE or len(gold) > LONGEST_ANSWER:
        return Verdict(None, False, "unreadable")
    answer = extract_answer(response, guess=guess)
    return grade_answer(answer or "", gold, pool, grader=grader)


def grade_answer(
    answer: str, gold: str, pool: TypedGrader, *, grader: GraderMode = "auto"
) -> Verdict:
    """Judge an extracted answer by the gold answer's type; arguments as of `grade_response`.

    An answer or a gold above `LONGEST_ANSWER` is unreadable.
    """
    if not answer.strip():
        return Verdict(None, False, "no answer")
    if len(answer) > LONGEST_ANSWER or len(gold) > LONGEST_ANSWER:
        return Verdict(answer, False, "unreadable")
    reason = compare_exactly(gold, answer)
    if reason is None:
        undecided = is_integer(gold) and grader != "symbolic"
        reason = "unreadable" if undecided else pool.compare(gold, answer)
    return Verdict(answer, reason == "correct", reason)


def serve(seconds: float, patience: float) -> None:
    """Be a worker of the pool: a JSON list of gold and answer a line in, a reason out.

    `seconds` of processor time, or `patience` on the wall, end the process within one line.
    """
    # The replies get a descriptor of their own, so that nothing a library prints mixes with them.
    replies = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    with contextlib.suppress(ValueError, OSError):  # not every system can limit it
        resource.setrlimit(resource.RLIMIT_AS, (MEGABYTES << 20, MEGABYTES << 20))
    with contextlib.suppress(ImportError):  # each comparison says so
        answer_comparison.forbid_eval()
        answer_comparison.compare_formulas("1", "2")  # loads sympy before any limit counts
    print(json.dumps("ready"), file=replies, flush=True)
    # Read bytes: a line must not depend on the locale.
    for line in sys.stdin.buffer:
        # The signals' defaults end the process, also inside C, and where the parent is gone.
        signal.setitimer(signal.ITIMER_PROF, seconds)
        signal.setitimer(signal.ITIMER_REAL, patience + 1)
        try:
            reply = answer_comparison.compare(*json.loads(line))
        except ImportError:
            reply = None
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.setitimer(signal.ITIMER_REAL, 0)
        print(json.dumps(reply), file=replies, flush=True)


if __name__ == "__main__":
    serve(*map(float, sys.argv[1:3]))
