"""The state of our callbacks, as files in the checkpoints of a transformers Trainer."""

from os import PathLike
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.distributed.fsdp import FSDPModule
from transformers import TrainerState, TrainingArguments
from transformers.trainer_utils import PREFIX_CHECKPOINT_DIR

from geosd.files import atomic_write
from geosd.optim.dtensors import full_tensor

OF = "of_checkpoint"
"""Key of the step and the sums of the weights that a file belongs to."""


def save_callback_state(
    args: TrainingArguments, state: TrainerState, name: str, value: dict[str, Any], model: nn.Module
) -> None:
    """Write values, step and sums of the weights to the folder that the Trainer has just saved."""
    if args.save_only_model:
        return
    saved = {**value, OF: {"step": state.global_step, "weights": _sums(model)}}
    if state.is_world_process_zero:
        with atomic_write(_folder(args, state) / name) as temporary:
            torch.save(saved, temporary)


def load_callback_state(
    args: TrainingArguments, state: TrainerState, name: str, model: nn.Module
) -> dict[str, Any]:
    """State that `save_callback_state` wrote into the checkpoint that the Trainer continues from.

    A Trainer does not tell its callbacks which that is: `resume_from_checkpoint` of the arguments
    if it is a path, and otherwise the checkpoint of this step in `output_dir`.

    Raises:
        FileNotFoundError: The checkpoint has no such file.
        ValueError: The file belongs to another step, or to other weights than the model has.
    """
    given = args.resume_from_checkpoint
    named = isinstance(given, str | PathLike) and str(given).lower() != "true"
    path = (Path(given) if named else _folder(args, state)) / name
    hint = (
        "\nHint: write the checkpoint's folder into resume_from_checkpoint of the arguments too; to"
        " begin without its state, begin a new training from the checkpoint's weights."
    )
    if not path.exists():
        raise FileNotFoundError(
            f"{path}: the training continues at step {state.global_step}, and this file is missing."
            f"{hint}"
        )
    saved = torch.load(path, map_location="cpu", weights_only=True, mmap=True)
    of = saved.pop(OF, {"step": "unknown"})
    if of != {"step": state.global_step, "weights": _sums(model)}:
        raise ValueError(
            f"{path} was saved with other weights than the model has: at step {of['step']}, and the"
            f" training continues at step {state.global_step}.{hint}"
        )
    return saved


def trained_by_callback(model: nn.Module) -> dict[str, nn.Parameter]:
    """The parameters that a callback's state is of: those that train, by name, or their shards."""
    for part in model.modules():
        if isinstance(part, FSDPModule):
            part.reshard()  # a pass without gradients leaves the output head gathered
    return {name: each for name, each in model.named_parameters() if each.requires_grad}


def _sums(model: nn.Module) -> list[int]:
    """Sum of the bytes of each parameter that trains; every process takes part."""
    whole = (
        full_tensor(each.detach()).contiguous() for each in trained_by_callback(model).values()
    )
    return [int(each.view(-1).view(torch.uint8).sum()) for each in whole]


def _folder(args: TrainingArguments, state: TrainerState) -> Path:
    return Path(args.output_dir) / f"{PREFIX_CHECKPOINT_DIR}-{state.global_step}"
