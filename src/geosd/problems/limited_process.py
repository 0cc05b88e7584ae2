"""Work that may not end, in a process of its own with limits on its time and memory.

The limit on time is processor time: a busy machine changes no outcome. What uses it up ends with
its process, and the next request starts another one.
"""

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from resource import RLIMIT_AS, RLIMIT_CORE, setrlimit
from typing import Any

START_SECONDS = 120.0
SAME_EVERYWHERE = {"OMP_NUM_THREADS": "1", "PYTHONHASHSEED": "0", "TZ": "UTC0"}
"""Environment of the process: no reply depends on the order of a set or the machine's time zone."""


class LimitedProcess:
    """One process, started at its first request and again after each end.

    Any thread may ask; one request is served after another. It runs `module`, which calls
    `serve_limited_process`.
    A request has `seconds` of processor time and `patience` seconds by the clock, which also run
    while a busy machine keeps it waiting.
    """

    def __init__(self, module: str, seconds: float, patience: float) -> None:
        self.module, self.seconds, self.patience = module, seconds, patience
        self.process: subprocess.Popen[bytes] | None = None
        self._starter = 0
        self._lock = threading.Lock()

    def ask(self, *request: Any) -> Any:
        """The reply to a request; both are plain values for JSON.

        Raises:
            TimeoutError: The request used up its processor time.
            ChildProcessError: The process ended in another way, or did not reply in time.
        """
        line = json.dumps(request).encode() + b"\n"
        with self._lock:
            if self._starter != os.getpid():  # of the program that forked this one, which asks it
                self.process = None
            try:
                if not self._send(line):  # it died between two requests; this one is not to blame
                    self.stop()
                    self._send(line)
                reply = self._read_line(self.patience)
            except BaseException:  # its reply would be taken for the next request's
                self.stop()
                raise
            if reply.endswith(b"\n"):
                return json.loads(reply)
            raise TimeoutError if self.stop(grace=1) == -signal.SIGPROF else ChildProcessError

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

    def start(self) -> None:
        """Start the process, and wait until it can take a request."""
        self._starter = os.getpid()
        self.process = subprocess.Popen(
            [sys.executable, "-m", self.module, str(self.seconds), str(self.patience)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={**os.environ, **SAME_EVERYWHERE},
            start_new_session=True,  # an interrupt of the parent is the parent's to handle
        )
        if self._read_line(START_SECONDS) != b'"ready"\n':
            self.stop()
            raise RuntimeError(
                f"the process of {self.module} did not start.\nHint: run"
                f' `python -m {self.module} 2 90` to see why; it prints "ready".'
            )

    def _send(self, line: bytes) -> bool:
        """Whether the process, started where there is none, took the request in."""
        if self.process is None:
            self.start()
        assert self.process is not None and self.process.stdin is not None
        try:
            self.process.stdin.write(line)
            self.process.stdin.flush()
        except BrokenPipeError:
            return False
        return True

    def _read_line(self, seconds: float) -> bytes:
        """The next line; a line without its end when the time is up or the process died."""
        assert self.process is not None and self.process.stdout is not None
        end = threading.Timer(seconds, self.process.kill)
        end.start()
        try:
            return self.process.stdout.readline()
        finally:
            end.cancel()


def serve_limited_process(work: Callable[..., Any], megabytes: int, *example: Any) -> None:
    """Be a limited process: a JSON list a line in, the result of `work` a line out.

    The program's arguments, seconds of processor time and seconds by the clock, are limits on one
    line; each ends the process. `work` on the example loads what it needs before they count.
    """
    seconds, patience = map(float, sys.argv[1:3])
    # The replies get a descriptor of their own, so that nothing a library prints mixes with them.
    replies = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    setrlimit(RLIMIT_CORE, (0, 0))
    with contextlib.suppress(ValueError, OSError):  # not every system can limit it
        setrlimit(RLIMIT_AS, (megabytes << 20, megabytes << 20))
    work(*example)
    print(json.dumps("ready"), file=replies, flush=True)
    # Read bytes: a line must not depend on the locale.
    for line in sys.stdin.buffer:
        # The signals' defaults end the process, also inside C, and where the parent is gone.
        signal.setitimer(signal.ITIMER_PROF, seconds)
        signal.setitimer(signal.ITIMER_REAL, patience + 1)
        reply = work(*json.loads(line))
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.setitimer(signal.ITIMER_REAL, 0)
        print(json.dumps(reply), file=replies, flush=True)
