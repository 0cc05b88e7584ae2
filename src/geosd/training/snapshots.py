"""The student's weights after chosen steps of a run, kept beside its final ones."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from torch import nn

from geosd.models.checkpoints import save_weights


class Snapshots:
    """One file for each of some steps, written when that step is done.

    Looking at the student changes nothing of the run. A run that goes on after a kill has the
    snapshots of its earlier life: they were written before the state that it goes on from.

    Args:
        folder: Where they lie, as `step_<k>.safetensors`: the weights after k updates.
        steps: The k.
    """

    def __init__(self, folder: Path, steps: Collection[int] = ()) -> None:
        """Remember where and when."""
        self.folder = folder
        self.steps = sorted(set(steps))

    def path(self, step: int) -> Path:
        """The file of the weights after `step` updates."""
        return self.folder / f"step_{step}.safetensors"

    def complete_until(self, step: int) -> bool:
        """Whether all snapshots due after `step` updates exist."""
        return all(self.path(due).exists() for due in self.steps if due <= step)

    def clear(self) -> None:
        """Remove those of another run: called where a run begins with its first step."""
        for path in self.folder.glob("step_*.safetensors"):
            path.unlink()

    def save(self, step: int, student: nn.Module) -> None:
        """Save the weights after `step` updates, if that is one of the steps."""
        if step in self.steps:
            save_weights(student, self.path(step))
