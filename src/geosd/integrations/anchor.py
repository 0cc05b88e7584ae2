"""The anchor theta_ckpt of a model that a transformers Trainer trains: a recent copy of it."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from transformers import TrainerCallback, TrainerState, TrainingArguments

from geosd.integrations.callback_state import (
    load_callback_state,
    save_callback_state,
    trained_by_callback,
)
from geosd.optim.dtensors import copy_full_into, full_tensor, is_dtensor


class Anchor(TrainerCallback):
    """The student's weights of steps 0, K, 2 K, ..., for passes through the student's own modules.

    Copied are the weights that train: of a model with adapters, as peft's LoRA, the adapters alone,
    of a model in shards (FSDP2) each process's shards. The file `anchor.pt` of a checkpoint has
    them whole. Before the first training the anchor is the student itself.

        anchor = Anchor(every=64)  # among the callbacks of a Trainer
        with torch.no_grad(), anchor.within(model):
            anchor_logits = model(ids).logits
    """

    FILE = "anchor.pt"

    def __init__(self, every: int = 64) -> None:
        """Check K, the number of steps."""
        if every < 1:
            raise ValueError(f"anchor_every is {every}.\nHint: at least 1; the paper has 64.")
        self.every = every
        self.weights: dict[str, Tensor] = {}

    @contextmanager
    def within(self, model: nn.Module) -> Iterator[None]:
        """Inside, the student has the anchor's weights, and is in evaluation mode."""
        training = model.training
        self._exchange(model.eval())
        try:
            yield
        finally:
            self._exchange(model.train(training))

    @torch.no_grad()
    def _exchange(self, model: nn.Module) -> None:
        values = trained_by_callback(model)
        for name, own in self.weights.items():
            value = values[name]
            if is_dtensor(value):  # FSDP2 gathers from the memory that it knows
                kept = value.clone()
                value.copy_(own)
                own.copy_(kept)
            else:
                value.data, own.data = own.data, value.data

    @torch.no_grad()
    def on_train_begin(
        self, args: TrainingArguments, state: TrainerState, *_: Any, model: nn.Module, **__: Any
    ) -> None:
        """Copy the weights that train, and continue with the anchor of a checkpoint."""
        self.weights = {
            name: value.detach().clone() for name, value in trained_by_callback(model).items()
        }
        if state.global_step:
            saved = load_callback_state(args, state, self.FILE, model)
            for name, own in self.weights.items():
                copy_full_into(saved[name], own)

    @torch.no_grad()
    def on_step_begin(
        self, args: TrainingArguments, state: TrainerState, *_: Any, model: nn.Module, **__: Any
    ) -> None:
        """Refresh the anchor, if the step is one of those."""
        if state.global_step % self.every == 0:
            values = trained_by_callback(model)
            for name, own in self.weights.items():
                own.copy_(values[name])

    def on_save(
        self, args: TrainingArguments, state: TrainerState, *_: Any, model: nn.Module, **__: Any
    ) -> None:
        """Write the anchor into the checkpoint."""
        saved = {}
        for name, own in self.weights.items():
            whole = full_tensor(own)  # every process takes part
            if state.is_world_process_zero:
                saved[name] = whole.cpu()
        save_callback_state(args, state, self.FILE, saved, model)
