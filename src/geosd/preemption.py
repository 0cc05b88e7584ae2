"""SIGTERM, by which a scheduler takes its node back: a job saves its state and ends."""

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager

EXIT_CODE = 75
"""Of a program that saved its state and wants to be started again: EX_TEMPFAIL of sysexits.h."""


class PreemptionError(Exception):
    """The job was asked to stop, and its state is saved; `geosd` then ends with `EXIT_CODE`."""


@contextmanager
def catch_sigterm() -> Iterator[Callable[[], bool]]:
    """Context in which SIGTERM does not end the process, but asks the job to save its state."""
    received = []
    previous = signal.signal(signal.SIGTERM, lambda *_: received.append(True))
    try:
        yield lambda: bool(received)
    finally:
        signal.signal(signal.SIGTERM, previous)
