"""What is left of the frozen models where their bodies are elsewhere: the output heads."""

from __future__ import annotations

from typing import Protocol

import torch
from torch import Tensor, nn

from geosd.training.fsdp import through


class Elsewhere(Protocol):
    """Whoever has the bodies."""

    def anchor(self) -> dict[str, Tensor]:
        """The anchor's weights, whole."""
        ...

    def restore(self, weights: dict[str, Tensor]) -> None:
        """Give the anchor weights that `anchor` gave."""
        ...


class Heads:
    """What the trainers keep of anchor and pi_0: their output heads; see `geosd.training.copies`.

    Args:
        student: As it is at step 0, when it is pi_0.
        experience: Whose workers have the rest.
        anchor_every: Steps between refreshes of the anchor.
    """

    def __init__(self, student: nn.Module, experience: Elsewhere, anchor_every: int) -> None:
        """Copy the student's head as it is now."""
        self.student, self.experience, self.anchor_every = student, experience, anchor_every
        self.teacher = student
        self.anchor, self.reference = _head(student), _head(student)

    def before(self, step: int) -> None:
        """Refresh the anchor's head when the workers refresh the rest."""
        if step % self.anchor_every == 0:
            self.anchor = _head(self.student)

    def reshard(self) -> None:
        """Nothing: heads are whole."""

    def state_dict(self) -> dict[str, dict[str, Tensor]]:
        """Weights that cannot be had from the student or from pi_0."""
        return {"anchor": self.experience.anchor()}

    @torch.no_grad()
    def load_state_dict(self, state: dict[str, dict[str, Tensor]]) -> None:
        """Continue from what `state_dict` gave, here or where nothing was placed elsewhere."""
        self.experience.restore(state["anchor"])
        self.anchor.lm_head.weight.copy_(state["anchor"]["lm_head.weight"])


@torch.no_grad()
def _head(student: nn.Module) -> nn.Module:
    head = nn.Module()
    weight = through(student, lambda whole: whole.lm_head.weight.detach().clone())
    head.lm_head = nn.Linear(*reversed(weight.shape), bias=False, device="meta")
    head.lm_head.weight = nn.Parameter(weight, requires_grad=False)
    return head
