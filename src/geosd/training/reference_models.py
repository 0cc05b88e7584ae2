"""The models that the student is compared with: base model, anchor, and a teacher of another time.

The paper's teacher is the current student itself; it names a fixed reference, a delayed copy and a
moving average of recent students as others that would serve. All are here.
"""

from __future__ import annotations

import copy
from typing import Literal

import torch
from torch import Tensor, nn
from torch.distributed.fsdp import FSDPModule

from geosd.models.precision import cast_parameters
from geosd.training.fsdp import (
    full_state_dict,
    load_full_state_dict,
    reshard,
    sharded_copy,
)

TeacherKind = Literal["live", "fixed", "delayed", "average"]


def frozen_copy(
    model: nn.Module,
    dtype: torch.dtype = torch.float32,
    compute: torch.dtype = torch.float32,
) -> nn.Module:
    """A copy without gradients, independent of the original and sharded where it is.

    The copy is stored as `dtype`, and of a sharded model gathered as `compute`. bfloat16 loses
    nothing where the student computes in it: these are its compute weights.
    """
    if isinstance(model, FSDPModule):
        frozen = sharded_copy(model, dtype, compute)
    else:
        frozen = cast_parameters(copy.deepcopy(model), dtype)
    return frozen.requires_grad_(False).eval()


@torch.no_grad()
def copy_parameters(target: nn.Module, source: nn.Module) -> None:
    """Give `target` the weights of `source`, exactly."""
    for into, value in zip(target.parameters(), source.parameters(), strict=True):
        into.copy_(value)


class ReferenceModels:
    """The models that a step compares the student with, each kept up to date in its own way.

    Args:
        student: The model being trained, as it is at step 0, when it is pi_0.
        anchor_every: Steps between refreshes of the anchor (paper: K_ckpt = 64).
        teacher: "live" is the student itself; "fixed" is pi_0; "delayed" is the anchor;
            "average" is an exponential moving average of the students.
        average_decay: Weight of the past in "average", per step.
        compute: What the student computes in.
    """

    def __init__(
        self,
        student: nn.Module,
        anchor_every: int,
        teacher: TeacherKind = "live",
        average_decay: float = 0.99,
        compute: torch.dtype = torch.float32,
    ) -> None:
        """Copy the student as it is now."""
        self.student = student
        self.anchor_every = anchor_every
        self.average_decay = average_decay
        self.reference = frozen_copy(student, compute, compute)
        self.anchor = frozen_copy(student, compute, compute)
        self.average = None
        if teacher == "average":  # of small changes: fp32
            self.average = frozen_copy(student, compute=compute)
        self.teacher = {
            "live": student,
            "fixed": self.reference,
            "delayed": self.anchor,
            "average": self.average,
        }[teacher]

    @torch.no_grad()
    def refresh(self, step: int) -> None:
        """Prepare for step `step`; the anchor becomes the student at 0, K_ckpt, 2 K_ckpt, ..."""
        if step % self.anchor_every == 0:
            copy_parameters(self.anchor, self.student)
        if self.average is not None and step > 0:
            for mean, now in zip(self.average.parameters(), self.student.parameters(), strict=True):
                mean.lerp_(now, 1 - self.average_decay)

    def reshard(self) -> None:
        """Free the parameters that a step gathered."""
        for model in (self.reference, self.anchor, self.average):
            if model is not None:
                reshard(model)

    def state_dict(self) -> dict[str, dict[str, Tensor]]:
        """Weights that follow neither from the student nor from pi_0, full on the first rank."""
        state = {"anchor": full_state_dict(self.anchor)}
        if self.average is not None:
            state["average"] = full_state_dict(self.average)
        return state

    def load_state_dict(self, state: dict[str, dict[str, Tensor]]) -> None:
        """Continue from what `state_dict` gave."""
        load_full_state_dict(self.anchor, state["anchor"])
        if self.average is not None:
            load_full_state_dict(self.average, state["average"])
