"""Preemption: a scheduler that wants its node back sends SIGTERM and waits a while."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager

EXIT_CODE = 75
"""Of a program that saved its state and wants to be started again: EX_TEMPFAIL of sysexits.h."""


class PreemptionError(Exception):
    """The run was asked to stop, and its state is saved.

    Attributes:
        steps: Steps done.
    """

    def __init__(self, steps: int) -> None:
        """Remember how far the run came."""
        super().__init__(f"asked to stop after {steps} steps; start again to go on from there")
        self.steps = steps


@contextmanager
def catch_sigterm() -> Iterator[Callable[[], bool]]:
    """Inside, SIGTERM does not end the process; yields a function that says whether one came."""
    received = []
    previous = signal.signal(signal.SIGTERM, lambda *_: received.append(True))
    try:
        yield lambda: bool(received)
    finally:
        signal.signal(signal.SIGTERM, previous)
