"""Files of our own in the checkpoints of a transformers Trainer."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from transformers import TrainerState, TrainingArguments
from transformers.trainer_utils import PREFIX_CHECKPOINT_DIR

from geosd.files import atomic_write


def save_to_checkpoint(args: TrainingArguments, state: TrainerState, name: str, value: Any) -> None:
    """Write tensors and plain values beside what the Trainer has just saved."""
    if state.is_world_process_zero and not args.save_only_model:
        with atomic_write(_folder(args, state) / name) as temporary:
            torch.save(value, temporary)


def load_from_checkpoint(args: TrainingArguments, state: TrainerState, name: str) -> Any:
    """What `save_to_checkpoint` wrote into the checkpoint that the Trainer continues from.

    A Trainer does not tell its callbacks from where it continues. It is `resume_from_checkpoint` of
    the arguments if that is a path, and otherwise the checkpoint of this step in `output_dir`.

    Raises:
        FileNotFoundError: The checkpoint has no such file.
    """
    given = args.resume_from_checkpoint
    named = isinstance(given, str | Path) and str(given).lower() != "true"
    path = (Path(given) if named else _folder(args, state)) / name
    if not path.exists():
        raise FileNotFoundError(
            f"{path}: the training continues at step {state.global_step}, and this file is missing."
            "\nHint: write the checkpoint's folder into resume_from_checkpoint of the arguments"
            " too; to begin without its state, begin a new training from the checkpoint's weights."
        )
    return torch.load(path, map_location="cpu", weights_only=True)


def _folder(args: TrainingArguments, state: TrainerState) -> Path:
    return Path(args.output_dir) / f"{PREFIX_CHECKPOINT_DIR}-{state.global_step}"
