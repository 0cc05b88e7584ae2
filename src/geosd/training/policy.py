"""A model as training has it, and the models that the student is compared with.

The weights are float32 masters between the passes, and lie in shards where several processes train
(`geosd.training.fsdp`): FSDP2 gathers a sharded model in its compute precision, adds gradients up
in float32 and updates float32 shards. `weights_in_precision` does the same for a model without
shards (`geosd.models.precision`). Autocast would cast each weight again in every pass without
gradients, and keep it past the update.

The paper's teacher is the current student itself; it names a fixed reference, a delayed copy and a
moving average of recent students as others that would serve. All are here, and two that need pi_0
with the solution and no question (`geosd.training.purified`).
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeVar

import torch
from torch import Tensor, nn
from torch.distributed.fsdp import FSDPModule
from transformers import PreTrainedTokenizerBase

from geosd.models.load_and_save import load_model
from geosd.models.precision import weights_in_precision
from geosd.optim.dtensors import full_tensor
from geosd.training.chunked_logits import ChunkedLogits, chunked_hidden_states
from geosd.training.fsdp import (
    full_state_dict,
    load_full_state_dict,
    reshard,
    shard,
    sharded_copy,
    with_root_gathered,
)
from geosd.training.packing import Packed
from geosd.training.processes import TrainingProcesses, training_process_device

T = TypeVar("T")
TeacherKind = Literal["live", "fixed", "delayed", "average", "solution_only", "purified"]


@dataclass(frozen=True)
class Policy:
    """A causal language model, whole or in shards, and the precision of its passes."""

    model: nn.Module
    compute: torch.dtype = torch.float32

    @classmethod
    def load(
        cls,
        folder: Path,
        ranks: TrainingProcesses,
        compute: torch.dtype,
        storage: torch.dtype = torch.float32,
    ) -> tuple[Policy, PreTrainedTokenizerBase]:
        """The policy of a checkpoint, in shards where several ranks have it, and its tokenizer."""
        model, tokenizer = load_model(folder, storage)
        if ranks.group is None:
            model.to(training_process_device())
        else:
            shard(model, ranks.group, training_process_device(), compute)
        return cls(model, compute), tokenizer

    @property
    def device(self) -> torch.device:
        """Where the weights are."""
        return next(self.model.parameters()).device

    @contextmanager
    def passes(self, *others: nn.Module | None) -> Iterator[None]:
        """Context of passes of this model and of others; afterwards no model is gathered."""
        models = [model for model in (self.model, *others) if model is not None]
        with ExitStack() as stack:
            for model in models:
                stack.enter_context(weights_in_precision(model, self.compute))
            yield
        for model in models:
            reshard(model)

    def with_head(self, work: Callable[[], T]) -> T:
        """The result of `work`, which may read the output head; see `with_root_gathered`."""
        return with_root_gathered(self.model, lambda root: work())

    @torch.no_grad()
    def frozen_head(self) -> nn.Module:
        """A module with a whole copy of `lm_head`, without gradients; not within `passes`."""
        head = nn.Module()
        weight = self.with_head(lambda: self.model.lm_head.weight.detach().clone()).to(self.compute)
        reshard(self.model)  # a state can be loaded into shards only
        head.lm_head = nn.Linear(*reversed(weight.shape), bias=False, device="meta")
        head.lm_head.weight = nn.Parameter(weight, requires_grad=False)
        return head

    @torch.no_grad()
    def gradient_norm(self) -> float:
        """Euclidean norm of the gradient as backpropagated, before any preconditioning."""
        gradients = [p.grad for p in self.model.parameters() if p.grad is not None]
        return full_tensor(torch.nn.utils.get_total_norm(gradients)).item()


def frozen_copy(
    model: nn.Module, dtype: torch.dtype = torch.float32, compute: torch.dtype = torch.float32
) -> nn.Module:
    """A frozen reference model: a copy without gradients, sharded where the original is.

    It is stored as `dtype`, and of a sharded model gathered as `compute`. bfloat16 loses nothing
    where the student computes in it: the copy is its compute weights. Weights that do not train, as
    those of a model with adapters, are the original's own.
    """
    if isinstance(model, FSDPModule):
        frozen = sharded_copy(model, dtype, compute)
    else:
        shared = {id(p): p for p in model.parameters() if not p.requires_grad}
        frozen = copy.deepcopy(model, shared)
        for parameter in frozen.parameters():
            if id(parameter) not in shared:
                parameter.data = parameter.data.to(dtype)
    return frozen.requires_grad_(False).eval()


@torch.no_grad()
def copy_parameters(target: nn.Module, source: nn.Module) -> None:
    """Give `target` the weights of `source`, exactly."""
    for into, value in zip(target.parameters(), source.parameters(), strict=True):
        into.copy_(value)


class ReferenceModels:
    """The models that a step compares the student with, each kept up to date in its own way.

    Built at step 0, when the student is pi_0. The anchor is refreshed every `anchor_every` steps
    (paper: K_ckpt = 64). The teacher is "live", the student itself; "fixed", pi_0; "delayed", the
    anchor; "average", a moving average of the students, which keeps `average_decay` in a step;
    "solution_only", pi_0, whose prompts lack the question (`Rollouts`); or "purified", pi_0 with
    question and solution, from which the caller makes a target by `PurifiedLogits`.
    """

    def __init__(
        self,
        policy: Policy,
        anchor_every: int,
        teacher: TeacherKind = "live",
        average_decay: float = 0.99,
    ) -> None:
        student, compute = policy.model, policy.compute
        self.student, self.anchor_every, self.average_decay = student, anchor_every, average_decay
        self.reference = frozen_copy(student, compute, compute)
        self.anchor = frozen_copy(student, compute, compute)
        # Of small changes: fp32.
        self.average = frozen_copy(student, compute=compute) if teacher == "average" else None
        models = {
            "live": student,
            "fixed": self.reference,
            "delayed": self.anchor,
            "average": self.average,
            "solution_only": self.reference,
            "purified": self.reference,
        }
        self.teacher = models[teacher]
        self.purified = teacher == "purified"

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
        average = {"average": self.average} if self.average is not None else {}
        models = {"anchor": self.anchor, **average}
        return {name: full_state_dict(model) for name, model in models.items()}

    def load_state_dict(self, state: dict[str, dict[str, Tensor]]) -> None:
        """Continue from what `state_dict` gave."""
        for name, weights in state.items():
            load_full_state_dict(getattr(self, name), weights)


def policy_response_logits(
    model: nn.Module, packed: Packed, every_position: bool = False
) -> ChunkedLogits:
    """Chunked logits at the response tokens; the body runs once, as `chunked_hidden_states`."""
    hidden_ND = with_root_gathered(
        model, lambda root: chunked_hidden_states(root, packed, every_position)
    )
    return ChunkedLogits(model, hidden_ND)
