"""The models that the student is compared with: base model, anchor, and a teacher of another time.

The paper's teacher is the current student itself; it names a fixed reference, a delayed copy and a
moving average of recent students as others that would serve. All are here. Where a rollout worker
has anchor and pi_0, the trainers have the output heads of both.
"""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor, nn

from geosd.training.fsdp import full_state_dict, load_full_state_dict
from geosd.training.policy import Policy, copy_parameters, frozen_copy
from geosd.training.rollout_workers import RemoteRollouts

TeacherKind = Literal["live", "fixed", "delayed", "average"]


class ReferenceModels:
    """The models that a step compares the student with, each kept up to date in its own way.

    Args:
        policy: The student, as it is at step 0, when it is pi_0.
        anchor_every: Steps between refreshes of the anchor (paper: K_ckpt = 64).
        teacher: "live" is the student itself; "fixed" is pi_0; "delayed" is the anchor;
            "average" is an exponential moving average of the students.
        average_decay: Weight of the past in "average", per step.
    """

    def __init__(
        self,
        policy: Policy,
        anchor_every: int,
        teacher: TeacherKind = "live",
        average_decay: float = 0.99,
    ) -> None:
        """Copy the student as it is now."""
        student, compute = policy.model, policy.compute
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

    def state_dict(self) -> dict[str, dict[str, Tensor]]:
        """Weights that follow neither from the student nor from pi_0, full on the first rank."""
        return {name: full_state_dict(model) for name, model in self._kept().items()}

    def load_state_dict(self, state: dict[str, dict[str, Tensor]]) -> None:
        """Continue from what `state_dict` gave."""
        for name, model in self._kept().items():
            load_full_state_dict(model, state[name])

    def _kept(self) -> dict[str, nn.Module]:
        models = {"anchor": self.anchor, "average": self.average}
        return {name: model for name, model in models.items() if model is not None}


class ReferenceHeads:
    """The output heads of anchor and pi_0, where a rollout worker has the rest of both models.

    Has the methods of `ReferenceModels`. The teacher is the live student.

    Args:
        policy: The student, as it is at step 0, when it is pi_0.
        owner: Leads to the whole anchor.
        anchor_every: Steps between refreshes of the anchor.
    """

    average = None  # the teacher is no average

    def __init__(self, policy: Policy, owner: RemoteRollouts, anchor_every: int) -> None:
        """Copy the student's head as it is now."""
        self.policy, self.owner, self.anchor_every = policy, owner, anchor_every
        self.teacher = policy.model
        self.anchor, self.reference = policy.frozen_head(), policy.frozen_head()

    def refresh(self, step: int) -> None:
        """Refresh the anchor's head at the steps at which the worker refreshes the rest."""
        if step % self.anchor_every == 0:
            self.anchor = self.policy.frozen_head()

    def state_dict(self) -> dict[str, dict[str, Tensor]]:
        """Weights that follow neither from the student nor from pi_0."""
        return {"anchor": self.owner.anchor_state_dict()}

    @torch.no_grad()
    def load_state_dict(self, state: dict[str, dict[str, Tensor]]) -> None:
        """Continue from what `state_dict` gave, of this class or of `ReferenceModels`."""
        self.owner.load_anchor_state_dict(state["anchor"])
        self.anchor.lm_head.weight.copy_(state["anchor"]["lm_head.weight"])
