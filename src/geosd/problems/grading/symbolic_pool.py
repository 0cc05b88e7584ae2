"""A pool of worker processes for symbolic comparisons, each ended by a clock.

A response can hold an expression that no computer finishes, and sympy will try. Signals reach only
the main thread, and only between Python instructions. So each comparison runs in a process of its
own; when its time is up the process is killed, a new one takes its place, and the verdict says so.
"""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import queue
import resource
import select
import signal
import subprocess
import sys
import threading
import time
from typing import Literal

Outcome = Literal["equal", "different", "unreadable", "timeout", "crash"]
START_SECONDS = 120.0
MEGABYTES = 4096


class MissingMathError(RuntimeError):
    """math-verify is not installed, and a symbolic comparison needs it."""


class _Worker:
    """One process, started at its first request and again after each end."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.process: subprocess.Popen[bytes] | None = None

    def compare(self, gold: str, answer: str) -> Outcome:
        if self.process is None:
            self._start()
        process = self.process
        assert process is not None and process.stdin is not None
        try:
            process.stdin.write(json.dumps([gold, answer]).encode() + b"\n")
            process.stdin.flush()
        except OSError:  # it died between two requests; this request is not to blame
            self.stop()
            self._start()
            return self.compare(gold, answer)
        try:
            line = self._read_line(self.seconds)
        except BaseException:  # its answer would be taken for the next request's
            self.stop()
            raise
        if line is None:
            self.stop()
            return "timeout"
        if not line.endswith(b"\n"):
            self.stop()
            return "crash"
        return json.loads(line)

    def stop(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.communicate()
            self.process = None

    def _start(self) -> None:
        # A session of its own: an interrupt of the parent is the parent's to handle.
        self.process = subprocess.Popen(
            [sys.executable, "-m", "geosd.problems.grading.symbolic_pool"]
            + [str(self.seconds), str(MEGABYTES)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
            start_new_session=True,
            bufsize=0,
        )
        if self._read_line(START_SECONDS) != b'"ready"\n':
            self.stop()
            raise RuntimeError(
                "a grading worker did not start.\nHint: run"
                " `python -m geosd.problems.grading.symbolic_pool 5 4096` to see why; it prints"
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
            read = os.read(descriptor, 4096)
            if not read:
                return line
            line += read
        return line


class SymbolicPool(contextlib.AbstractContextManager):
    """A pool of processes that compare answers symbolically; any thread may compare.

    The processes start when they are first needed: grading integers alone starts none.

    Args:
        workers: How many processes; more threads than that wait for each other.
        seconds: Limit on one comparison, in seconds.

    Raises:
        MissingMathError: At the first comparison, where math-verify is not installed.

    Example:
        >>> with SymbolicPool(workers=1) as pool:
        ...     pool.compare("1/2", "0.5")
        'equal'
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
        self._outcomes: dict[tuple[str, str], Outcome] = {}
        self._lock = threading.Lock()

    def compare(self, gold: str, answer: str) -> Outcome:
        """Compare two normalized answers symbolically, in a worker process of the pool.

        Returns:
            `equal`, `different`, `unreadable`; or `timeout`, or `crash` where the process died.
        """
        with self._lock:
            if (gold, answer) in self._outcomes:
                return self._outcomes[gold, answer]
        if importlib.util.find_spec("math_verify") is None:
            raise MissingMathError(
                f"the gold answer {gold!r} is no integer; comparing it needs math-verify, which is"
                " not installed.\nHint: pip install 'geosd[math]'; integer answers need nothing."
            )
        worker = self._idle.get()
        try:
            outcome = worker.compare(gold, answer)
        finally:
            self._idle.put(worker)
        with self._lock:
            self._outcomes[gold, answer] = outcome
        return outcome

    def close(self) -> None:
        """End the worker processes of the pool."""
        for worker in self._workers:
            worker.stop()

    def __exit__(self, *_: object) -> None:
        """End the processes."""
        self.close()


def serve_comparisons(seconds: float, megabytes: int) -> None:
    """Be a worker of the pool: one JSON list `[gold, answer]` a line in, one outcome a line out.

    The process lives until its input ends or its parent kills it. `seconds` is the parent's limit
    on one comparison, `megabytes` the limit on this process's address space.
    """
    # The answers get a descriptor of their own, so that nothing a library prints mixes with them.
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    with contextlib.suppress(ValueError, OSError):  # not every system can limit it
        resource.setrlimit(resource.RLIMIT_AS, (megabytes << 20, megabytes << 20))
    from geosd.problems.grading import symbolic_comparison

    symbolic_comparison.forbid_eval()
    symbolic_comparison.compare("1", "2")  # loads sympy and the grammar, before any clock runs
    print(json.dumps("ready"), file=answers, flush=True)
    # Read bytes: a line must not depend on the locale.
    for line in sys.stdin.buffer:
        gold, answer = json.loads(line)
        # Should the parent be gone, the system's alarm ends even a computation inside C.
        signal.setitimer(signal.ITIMER_REAL, 2 * seconds + 1)
        verdict = symbolic_comparison.compare(gold, answer)
        signal.setitimer(signal.ITIMER_REAL, 0)
        print(json.dumps(verdict), file=answers, flush=True)


if __name__ == "__main__":
    serve_comparisons(float(sys.argv[1]), int(sys.argv[2]))
