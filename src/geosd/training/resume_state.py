"""The state a killed run continues from, bit for bit.

It lies in a scratch folder that no workflow knows: a scheduler deletes the declared outputs of a
job that dies, and these are what must survive it.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import torch

from geosd.files import atomic_write


class ResumeState:
    """One file, replaced whole, that holds the run's state after some number of steps.

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
        with atomic_write(self.path) as temporary:
            torch.save({"identity": self.identity, "step": step, "state": state}, temporary)

    def load(self) -> tuple[int, dict[str, Any]] | None:
        """The steps done and the state after them; None where there is nothing to continue."""
        if not self.path.exists():
            return None
        # weights_only: a state file is data; nothing in it may run. mmap: of a state written whole,
        # every rank reads it and takes its shards; together they hold it in memory once.
        kept = torch.load(self.path, map_location="cpu", weights_only=True, mmap=True)
        if kept["identity"] != self.identity:
            return None
        return kept["step"], kept["state"]

    def clear(self) -> None:
        """Forget the state: the run is complete."""
        self.path.unlink(missing_ok=True)
