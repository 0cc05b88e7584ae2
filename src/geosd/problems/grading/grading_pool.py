"""A pool of worker processes that extract and compare answers, each ended by a clock.

A response can hold an expression that no computer finishes, and sympy will try. Signals reach only
the main thread, and only between Python instructions. So whatever is graded by more than integers
is graded in a process of its own, from the response to the verdict, and so is a very long response.
When its time is up the process is killed, a new one takes its place, and the verdict says so.
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
from typing import Any, Literal

from geosd.problems.grading import answer_comparison
from geosd.problems.grading.answer_extraction import extract_answer
from geosd.problems.records import Reason

START_SECONDS = 120.0
MEGABYTES = 4096
REMEMBERED = 4096
"""Outcomes that a pool keeps: answers repeat each other within a problem's samples, and a training
of many thousand steps must not grow by them."""


class MissingMathError(RuntimeError):
    """math-verify is not installed, and a comparison of formulas needs it."""


class WorkerEndedError(RuntimeError):
    """A worker process was ended before it answered.

    Attributes:
        reason: `timeout` where the clock ended it, `crash` where it died.
    """

    def __init__(self, reason: Literal["timeout", "crash"]) -> None:
        """Name the reason as a verdict does."""
        super().__init__(reason)
        self.reason: Literal["timeout", "crash"] = reason


class _Worker:
    """One process, started at its first request and again after each end."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.process: subprocess.Popen[bytes] | None = None

    def ask(self, task: str, *arguments: Any) -> Any:
        request = json.dumps([task, *arguments]).encode() + b"\n"
        try:
            if not self._send(request):  # it died between two requests; this one is not to blame
                self.stop()
                self._send(request)
            line = self._read_line(self.seconds)
        except BaseException:  # its answer would be taken for the next request's
            self.stop()
            raise
        if line is None:
            self.stop()
            raise WorkerEndedError("timeout")
        if not line.endswith(b"\n"):
            self.stop()
            raise WorkerEndedError("crash")
        return json.loads(line)

    def stop(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.communicate()
            self.process = None

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
            [sys.executable, "-m", "geosd.problems.grading.grading_pool"]
            + [str(self.seconds), str(MEGABYTES)],
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
                " `python -m geosd.problems.grading.grading_pool 5 4096` to see why; it prints"
                ' "ready".'
            )

    def _read_line(self, seconds: float) -> bytes | None:
        """The next line; None when the time is up, a line without its end when the process died."""
        assert self.process is not None and self.process.stdout is not None
        end = time.monotonic() + seconds
        descriptor = self.process.stdout.fileno()
        poll = select.poll()
        poll.register(descriptor, select.POLLIN | select.POLLHUP)
        line = b""
        while not line.endswith(b"\n"):
            if not poll.poll(max(0.0, end - time.monotonic()) * 1000):
                return None
            read = os.read(descriptor, 1 << 16)
            if not read:
                return line
            line += read
        return line


class GradingPool(contextlib.AbstractContextManager):
    """A pool of processes that extract and compare answers; any thread may ask.

    The processes start when they are first needed: grading integers alone starts none.

    Args:
        workers: How many processes; more threads than that wait for each other.
        seconds: Limit on one extraction or comparison, in seconds; one that reaches it is tried
            once more.

    Example:
        >>> with GradingPool(workers=1) as pool:
        ...     pool.compare("1/2", "0.5")
        'correct'
    """

    def __init__(self, workers: int = 2, seconds: float = 5.0) -> None:
        """Start nothing yet; see the class."""
        if workers < 1 or seconds <= 0:
            raise ValueError(
                f"{workers} workers with {seconds} seconds each; allowed are at least 1 worker and"
                " more than 0 seconds.\nHint: 2 workers and 5 seconds are the defaults."
            )
        self.seconds = seconds
        self._workers = [_Worker(seconds) for _ in range(workers)]
        self._idle: queue.SimpleQueue[_Worker] = queue.SimpleQueue()
        for worker in self._workers:
            self._idle.put(worker)
        # Samples of one problem repeat each other's answers.
        self._outcome = functools.lru_cache(REMEMBERED)(self._compare)

    def extract(self, response: str, guess: bool = False) -> str | None:
        """Extract the final answer of a response in a worker process; see `extract_answer`.

        Raises:
            WorkerEndedError: The process took too long, or died.
        """
        return self._ask("extract", response, guess)

    def compare(self, gold: str, answer: str) -> Reason:
        """Compare an answer with the gold answer in a worker process; see `answer_comparison`.

        Raises:
            MissingMathError: Only formulas can decide, and math-verify is not installed.
        """
        outcome = self._outcome(gold, answer)
        if outcome is None:
            raise MissingMathError(
                f"the gold answer {gold[:80]!r} is no integer; comparing it needs math-verify,"
                " which is not installed.\nHint: pip install 'geosd[math]'; integer answers need"
                " nothing."
            )
        return outcome

    def close(self) -> None:
        """End the worker processes of the pool."""
        for worker in self._workers:
            worker.stop()

    def __exit__(self, *_: object) -> None:
        """End the processes."""
        self.close()

    def _compare(self, gold: str, answer: str) -> Reason | None:
        try:
            return self._ask("compare", gold, answer)
        except WorkerEndedError as ended:
            return ended.reason

    def _ask(self, task: str, *arguments: Any) -> Any:
        worker = self._idle.get()
        try:
            try:
                return worker.ask(task, *arguments)
            except WorkerEndedError as ended:
                if ended.reason != "timeout":
                    raise
                # The clock also runs while a busy machine keeps the worker waiting, and a verdict
                # must not depend on that: only a task that times out twice is too long.
                return worker.ask(task, *arguments)
        finally:
            self._idle.put(worker)


def serve(seconds: float, megabytes: int) -> None:
    """Be a worker of the pool: one JSON list, a task and its arguments, a line in; one reply out.

    The process lives until its input ends or its parent kills it. `seconds` is the parent's limit
    on one task, `megabytes` the limit on this process's address space.
    """
    # The replies get a descriptor of their own, so that nothing a library prints mixes with them.
    replies = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    with contextlib.suppress(ValueError, OSError):  # not every system can limit it
        resource.setrlimit(resource.RLIMIT_AS, (megabytes << 20, megabytes << 20))
    with contextlib.suppress(ImportError):  # words and numbers need no math-verify
        from geosd.problems.grading import symbolic_comparison

        symbolic_comparison.forbid_eval()
        symbolic_comparison.compare("1", "2")  # loads sympy and the grammar, before any clock runs
    print(json.dumps("ready"), file=replies, flush=True)
    # Read bytes: a line must not depend on the locale.
    for line in sys.stdin.buffer:
        # Should the parent be gone, the system's alarm ends even a computation inside C.
        signal.setitimer(signal.ITIMER_REAL, 2 * seconds + 1)
        reply = _perform(*json.loads(line))
        signal.setitimer(signal.ITIMER_REAL, 0)
        print(json.dumps(reply), file=replies, flush=True)


def _perform(task: str, *arguments: Any) -> str | None:
    if task == "extract":
        response, guess = arguments
        found = extract_answer(response, guess=guess)
        return found.text if found else None
    try:
        return answer_comparison.compare(*arguments)
    except ImportError:
        return None


if __name__ == "__main__":
    serve(float(sys.argv[1]), int(sys.argv[2]))
