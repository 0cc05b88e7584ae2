"""The anchor theta_ckpt of a model that a transformers Trainer trains: a recent copy of it."""

import copy
from typing import Any

import torch
from torch import Tensor, nn
from transformers import TrainerCallback, TrainerState, TrainingArguments

from geosd.integrations.callback_state import load_from_checkpoint, save_to_checkpoint


def frozen_copy(model: nn.Module) -> nn.Module:
    """A copy of a model for evaluation, which shares with it the parameters that do not train.

    Of a model with adapters, as peft's LoRA, only the adapters are copied: the base is there once.
    """
    shared = {id(each): each for each in model.parameters() if not each.requires_grad}
    return copy.deepcopy(model, shared).requires_grad_(False).eval()


class AnchorCallback(TrainerCallback):
    """Gives the anchor the student's weights at steps 0, K, ..., and keeps it in checkpoints.

    The anchor is a `frozen_copy` of the student; the file `anchor.pt` has the weights that train.
    """

    FILE = "anchor.pt"

    def __init__(self, anchor: nn.Module, every: int) -> None:
        """Check the number of steps."""
        if every < 1:
            raise ValueError(f"anchor_every is {every}.\nHint: at least 1; the paper has 64.")
        self.anchor, self.every = anchor, every

    @torch.no_grad()
    def on_train_begin(
        self, args: TrainingArguments, state: TrainerState, *_: Any, model: nn.Module, **__: Any
    ) -> None:
        """Continue with the anchor of a checkpoint."""
        if state.global_step:
            saved = load_from_checkpoint(args, state, self.FILE, model)
            for name, (own, _) in self._weights(model).items():
                own.copy_(saved[name])

    @torch.no_grad()
    def on_step_begin(
        self, args: TrainingArguments, state: TrainerState, *_: Any, model: nn.Module, **__: Any
    ) -> None:
        """Refresh the anchor, if the step is one of those."""
        if state.global_step % self.every == 0:
            for own, value in self._weights(model).values():
                own.copy_(value)

    def on_save(
        self, args: TrainingArguments, state: TrainerState, *_: Any, model: nn.Module, **__: Any
    ) -> None:
        """Write the anchor into the checkpoint."""
        saved = {name: own for name, (own, _) in self._weights(model).items()}
        save_to_checkpoint(args, state, self.FILE, saved, model)

    def _weights(self, model: nn.Module) -> dict[str, tuple[Tensor, Tensor]]:
        """The weights that the anchor does not share, and the student's, by name."""
        both = zip(self.anchor.named_parameters(), model.parameters(), strict=True)
        return {name: (own, value) for (name, own), value in both if own is not value}
