"""Survivors of a kill: the states a run continues from, bit for bit, and its snapshots.

The states lie in a scratch folder that no workflow knows: a scheduler deletes the declared outputs
of a job that dies. Before it takes its node back it sends SIGTERM and waits a while.
"""

import logging
import zipfile
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any

import torch
from torch import nn

from geosd.files import atomic_write, remove_leftovers, write_json
from geosd.models.load_and_save import save_weights
from geosd.provenance.identity import differing_parts, identity_digests
from geosd.training.processes import TrainingProcesses

logger = logging.getLogger(__name__)


class DamagedStateError(ValueError):
    """A state that is not, byte for byte, one that this run saved."""


class ResumeState:
    """The files from which an interrupted run resumes: its last state, and the one before.

    `torch.save` writes a checksum (CRC-32) of every record of a state, which `load` compares before
    it reads anything else. `identity` has everything that makes a run what it is, by name:
    settings, seed, hashes of inputs, code, packages. A state of another identity in the scratch
    folder is set aside, as `state.other.pt`, and kept until this run has two states of its own.
    """

    def __init__(self, folder: Path, identity: Any) -> None:
        self.path, self.previous = folder / "state.pt", folder / "state.previous.pt"
        self.aside = folder / "state.other.pt"
        self.digests = identity_digests(identity)

    def save(self, step: int, state: dict[str, Any]) -> None:
        """Keep the state after `step` steps, tensors and plain values only, and the one before."""
        # First, so that the disk never holds more than two states.
        if self.path.exists():
            self.aside.unlink(missing_ok=True)
            self.path.replace(self.previous)
        kept = {"identity": self.digests, "step": step, "state": state}
        with atomic_write(self.path) as temporary:
            torch.save({**kept, "threads": torch.get_num_threads()}, temporary)

    def load(
        self,
        steps: int,
        ranks: TrainingProcesses | None = None,
        usable: Callable[[int], bool] = lambda step: True,
    ) -> tuple[int, dict[str, Any]] | None:
        """The steps done and the state after them; None where there is nothing to continue.

        A state that is damaged, or of a step that the run does not have, is reported and renamed to
        `<name>.damaged`, and the one before is taken. Several ranks continue from the state that
        the first one chooses, one of the run's `steps` that is `usable`; RuntimeError if a rank has
        another. The process then computes in as many threads as the run began with: they decide the
        last bits of sums.
        """
        ranks = ranks or TrainingProcesses()
        chosen = ranks.broadcast(lambda: self._choose(steps, usable))
        if chosen is None:
            return None
        name, step = chosen
        path = self.path.with_name(name)
        saved = _read(path) if path.exists() else {}
        if ranks.any((saved.get("identity"), saved.get("step")) != (self.digests, step)):
            raise RuntimeError(
                f"{path}: not every rank finds the first rank's state there, after {step} steps.\n"
                "Hint: the scratch folder must lie on a file system that all ranks share."
            )
        torch.set_num_threads(saved["threads"])
        return step, saved["state"]

    def clear(self) -> None:
        """Forget the states: the run is complete."""
        for path in (self.path, self.previous, self.aside):
            path.unlink(missing_ok=True)

    def _choose(self, steps: int, usable: Callable[[int], bool]) -> tuple[str, int] | None:
        """Name and step of the last state that the run can continue from."""
        remove_leftovers(self.path)  # a scratch folder belongs to one run at a time
        for path in (self.path, self.previous):
            if not path.exists():
                continue
            try:
                saved = _verify(path)
                if saved["identity"] != self.digests:
                    self._set_aside(path, saved["identity"])
                    continue
                if not 1 <= saved["step"] <= steps:
                    raise DamagedStateError(f"it says step {saved['step']} of a run of {steps}")
            except DamagedStateError as error:
                aside = path.with_name(f"{path.name}.damaged")
                path.replace(aside)
                logger.warning(
                    f"{path} is no state of this run: {error}. The run goes on from the state"
                    " before it or, where there is none, from its start, and ends with the same"
                    f" bits.\nHint: the file is {aside.name} now; look at the disk, and remove it."
                )
                continue
            if usable(saved["step"]):
                return path.name, saved["step"]
        return None

    def _set_aside(self, path: Path, digests: Mapping[str, str]) -> None:
        """Set aside the last state of another run, and remove the one before it."""
        if path == self.previous and self.aside.exists():
            path.unlink()
            return
        path.replace(self.aside)
        logger.warning(
            f"{path} is of a run with other {differing_parts(self.digests, digests)}: it is"
            f" {self.aside.name} now, and this run begins anew."
        )


def _verify(path: Path) -> dict[str, Any]:
    """Read a state that `ResumeState.save` wrote, and compare every record with its checksum."""
    with path.open("rb"):
        pass  # a file that cannot be opened at all is no damaged one
    try:
        with zipfile.ZipFile(path) as records:
            damaged = records.testzip()
        saved = _read(path) if damaged is None else {}
    except Exception as error:  # whatever the bytes lead zipfile or torch to
        text = f"it cannot be read ({type(error).__name__}: {error})"
        raise DamagedStateError(text) from error
    if damaged is not None:
        record = damaged.partition("/")[2]
        raise DamagedStateError(f"its record {record} has another checksum than it was saved with")
    kinds = {"identity": dict, "step": int, "state": dict, "threads": int}
    if not isinstance(saved, dict) or any(type(saved.get(k)) is not v for k, v in kinds.items()):
        raise DamagedStateError(f"it does not hold {', '.join(kinds)}")
    return saved


def _read(path: Path) -> dict[str, Any]:
    # weights_only: a state file is data; nothing in it may run. mmap: of a state written whole,
    # every rank reads it and takes its shards; together they hold it in memory once.
    return torch.load(path, map_location="cpu", weights_only=True, mmap=True)


class Snapshots:
    """The files of snapshots after chosen steps: weights, and what a run that ended there measures.

    They are `step_<k>.safetensors`, stored in the type `storage`, and `step_<k>.json`. Looking at
    the student changes nothing of the run. They are written before the state that a killed run goes
    on from, so that it has them all.
    """

    def __init__(
        self, folder: Path, steps: Collection[int] = (), storage: torch.dtype = torch.float32
    ) -> None:
        self.folder, self.steps, self.storage = folder, sorted(set(steps)), storage

    def path(self, step: int) -> Path:
        """The file of the weights after `step` updates."""
        return self.folder / f"step_{step}.safetensors"

    def complete_until(self, step: int) -> bool:
        """Whether all snapshots due after `step` updates exist."""
        return all(self.path(due).exists() for due in self.steps if due <= step)

    def clear(self) -> None:
        """Remove those of another run: called where a run begins with its first step."""
        for path in self.folder.glob("step_*"):
            path.unlink()

    def save(self, step: int, student: nn.Module, measured: dict[str, float]) -> None:
        """Save the measurement and the weights after `step` updates, in this order."""
        write_json(self.path(step).with_suffix(".json"), measured)
        save_weights(student, self.path(step), self.storage)
