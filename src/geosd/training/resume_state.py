"""What survives a kill: the state a run continues from, bit for bit, and its snapshots.

The state lies in a scratch folder that no workflow knows: a scheduler deletes the declared outputs
of a job that dies. Before it takes its node back it sends SIGTERM and waits a while.
"""

from __future__ import annotations

import hashlib
import json
import signal
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import nn

from geosd.files import atomic_write, write_json
from geosd.models.checkpoints import save_weights

EXIT_CODE = 75
"""Of a program that saved its state and wants to be started again: EX_TEMPFAIL of sysexits.h."""


class ResumeState:
    """The file from which an interrupted run resumes: its state after some step, replaced whole.

    Args:
        folder: The run's scratch folder.
        identity: Everything that makes this run what it is (settings, seed, hashes of its inputs).
            A state left by a run of another identity is not continued.
    """

    def __init__(self, folder: Path, identity: Any) -> None:
        """Remember where the state lies and whose it must be."""
        self.path = folder / "state.pt"
        text = json.dumps(identity, sort_keys=True, default=str)
        self.identity = hashlib.sha256(text.encode()).hexdigest()

    def save(self, step: int, state: dict[str, Any]) -> None:
        """Keep the state after `step` steps: tensors and plain values only."""
        kept = {"identity": self.identity, "step": step, "state": state}
        with atomic_write(self.path) as temporary:
            torch.save({**kept, "threads": torch.get_num_threads()}, temporary)

    def load(self) -> tuple[int, dict[str, Any]] | None:
        """The steps done and the state after them; None where there is nothing to continue.

        The process then computes in as many threads as the run began with: their number decides the
        last bits of sums, and a run that was killed ends with the bits of one that was not.
        """
        if not self.path.exists():
            return None
        # weights_only: a state file is data; nothing in it may run. mmap: of a state written whole,
        # every rank reads it and takes its shards; together they hold it in memory once.
        saved = torch.load(self.path, map_location="cpu", weights_only=True, mmap=True)
        if saved["identity"] != self.identity:
            return None
        torch.set_num_threads(saved.get("threads", torch.get_num_threads()))
        return saved["step"], saved["state"]

    def clear(self) -> None:
        """Forget the state: the run is complete."""
        self.path.unlink(missing_ok=True)


class Snapshots:
    """Snapshots after chosen steps: the weights, and the measurement that would end a run there.

    Looking at the student changes nothing of the run. A run that goes on after a kill has the
    snapshots of its earlier life: they were written before the state that it goes on from.

    Args:
        folder: Where they lie, as `step_<k>.safetensors`: the weights after k updates, and
            `step_<k>.json`: the values for the log.
        steps: The k.
    """

    def __init__(self, folder: Path, steps: Collection[int] = ()) -> None:
        """Remember where and when."""
        self.folder = folder
        self.steps = sorted(set(steps))

    def path(self, step: int) -> Path:
        """The file of the weights after `step` updates."""
        return self.folder / f"step_{step}.safetensors"

    def measured_path(self, step: int) -> Path:
        """The file of the measurement after `step` updates."""
        return self.folder / f"step_{step}.json"

    def complete_until(self, step: int) -> bool:
        """Whether all snapshots due after `step` updates exist."""
        return all(self.path(due).exists() for due in self.steps if due <= step)

    def clear(self) -> None:
        """Remove those of another run: called where a run begins with its first step."""
        for path in self.folder.glob("step_*"):
            path.unlink()

    def save(self, step: int, student: nn.Module, measured: dict[str, float]) -> None:
        """Save the measurement and the weights after `step` updates, in this order."""
        write_json(self.measured_path(step), measured)
        save_weights(student, self.path(step))


class PreemptionError(Exception):
    """The run was asked to stop, and its state is saved."""


@contextmanager
def catch_sigterm() -> Iterator[Callable[[], bool]]:
    """Context in which SIGTERM does not end the process, but asks the run to save its state."""
    received = []
    previous = signal.signal(signal.SIGTERM, lambda *_: received.append(True))
    try:
        yield lambda: bool(received)
    finally:
        signal.signal(signal.SIGTERM, previous)
