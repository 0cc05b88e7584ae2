"""The output heads of the frozen models, where a rollout worker has the rest of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from geosd.training.fsdp import reshard, with_root_gathered

if TYPE_CHECKING:
    from geosd.training.rollout_workers import InProcessRollouts, RemoteRollouts


class ReferenceHeads:
    """The output heads of anchor and pi_0, where a rollout worker has the rest of both models.

    Has the methods of `ReferenceModels`. The teacher is the live student.

    Args:
        student: The model being trained, as it is at step 0, when it is pi_0.
        owner: Has the whole anchor.
        anchor_every: Steps between refreshes of the anchor.
        compute: What the student computes in.
    """

    average = None  # the teacher is no average

    def __init__(
        self,
        student: nn.Module,
        owner: InProcessRollouts | RemoteRollouts,
        anchor_every: int,
        compute: torch.dtype = torch.float32,
    ) -> None:
        """Copy the student's head as it is now."""
        self.student, self.owner, self.anchor_every = student, owner, anchor_every
        self.compute = compute
        self.teacher = student
        self.anchor, self.reference = _head_copy(student, compute), _head_copy(student, compute)

    def refresh(self, step: int) -> None:
        """Refresh the anchor's head at the steps at which the worker refreshes the rest."""
        if step % self.anchor_every == 0:
            self.anchor = _head_copy(self.student, self.compute)

    def reshard(self) -> None:
        """Nothing: heads are not sharded."""

    def state_dict(self) -> dict[str, dict[str, Tensor]]:
        """Weights that follow neither from the student nor from pi_0."""
        return {"anchor": self.owner.anchor_state_dict()}

    @torch.no_grad()
    def load_state_dict(self, state: dict[str, dict[str, Tensor]]) -> None:
        """Continue from what `state_dict` gave, of this class or of `ReferenceModels`."""
        self.owner.load_anchor_state_dict(state["anchor"])
        self.anchor.lm_head.weight.copy_(state["anchor"]["lm_head.weight"])


@torch.no_grad()
def _head_copy(student: nn.Module, dtype: torch.dtype) -> nn.Module:
    head = nn.Module()
    copied = with_root_gathered(student, lambda root: root.lm_head.weight.detach().clone())
    reshard(student)  # a state can be loaded into shards only
    weight = copied.to(dtype)
    head.lm_head = nn.Linear(*reversed(weight.shape), bias=False, device="meta")
    head.lm_head.weight = nn.Parameter(weight, requires_grad=False)
    return head
