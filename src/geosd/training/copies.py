"""The frozen copies of the student: base model, anchor, and a teacher that is not the live student.

The paper's teacher is the current student itself; it names a fixed reference, a delayed copy and a
moving average of recent students as others that would serve. All are here.
"""

from __future__ import annotations

import copy
from typing import Literal

import torch
from torch import Tensor, nn

TeacherKind = Literal["live", "fixed", "delayed", "average"]


def frozen_copy(model: nn.Module) -> nn.Module:
    """A copy that carries no gradients, and whose later life is its own."""
    twin = copy.deepcopy(model)
    twin.requires_grad_(False)
    return twin.eval()


@torch.no_grad()
def overwrite(target: nn.Module, source: nn.Module) -> None:
    """Give `target` the weights of `source`, exactly."""
    for mine, theirs in zip(target.parameters(), source.parameters(), strict=True):
        mine.copy_(theirs)


class Copies:
    """The models that a step compares the student with, each kept up to date in its own way.

    Args:
        student: The model being trained, as it is at step 0, when it is pi_0.
        anchor_every: Steps between refreshes of the anchor (paper: K_ckpt = 64).
        teacher: "live" is the student itself; "fixed" is pi_0; "delayed" is the anchor;
            "average" is an exponential moving average of the students.
        average_decay: Weight of the past in "average", per step.
    """

    def __init__(
        self,
        student: nn.Module,
        anchor_every: int,
        teacher: TeacherKind = "live",
        average_decay: float = 0.99,
    ) -> None:
        """Copy the student as it is now."""
        self.student = student
        self.anchor_every = anchor_every
        self.average_decay = average_decay
        self.reference = frozen_copy(student)
        self.anchor = frozen_copy(student)
        self.average = frozen_copy(student) if teacher == "average" else None
        self.teacher = {
            "live": student,
            "fixed": self.reference,
            "delayed": self.anchor,
            "average": self.average,
        }[teacher]

    def before(self, step: int) -> None:
        """Refresh what step `step` compares with; the anchor at 0, K_ckpt, 2 K_ckpt, ..."""
        if step % self.anchor_every == 0:
            overwrite(self.anchor, self.student)
        if self.average is not None and step > 0:
            self._move_average()

    @torch.no_grad()
    def _move_average(self) -> None:
        pairs = zip(self.average.parameters(), self.student.parameters(), strict=True)
        for mean, now in pairs:
            mean.lerp_(now, 1 - self.average_decay)

    def state_dict(self) -> dict[str, dict[str, Tensor]]:
        """Weights that cannot be had from the student or from pi_0."""
        state = {"anchor": self.anchor.state_dict()}
        if self.average is not None:
            state["average"] = self.average.state_dict()
        return state

    def load_state_dict(self, state: dict[str, dict[str, Tensor]]) -> None:
        """Continue from what `state_dict` gave."""
        self.anchor.load_state_dict(state["anchor"])
        if self.average is not None:
            self.average.load_state_dict(state["average"])
