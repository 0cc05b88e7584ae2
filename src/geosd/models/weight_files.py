"""A model's weights alone, as one safetensors file: a checkpoint beside others of one run."""

from __future__ import annotations

from pathlib import Path

import torch
from safetensors.torch import load_file, save_file
from torch import nn

from geosd.files import atomic_write


def save_weights(model: nn.Module, path: Path | str) -> None:
    """Write the parameters of a model, whole or not at all; the same weights are the same bytes.

    Args:
        model: What to save. A tied parameter is written once, under its first name.
        path: The file.
    """
    weights = {name: value.detach().contiguous() for name, value in model.named_parameters()}
    with atomic_write(path) as temporary:
        save_file(weights, temporary, metadata={"format": "pt"})


@torch.no_grad()
def load_weights(model: nn.Module, path: Path | str) -> None:
    """Give a model the weights of a file that `save_weights` wrote, exactly and in place.

    Args:
        model: Of the architecture whose weights were saved.
        path: The file.

    Raises:
        FileNotFoundError: There is no such file.
        ValueError: The file's parameters are not those of the model.
    """
    path = Path(path)
    if not path.exists():
        raise FileNotFoundError(
            f"{path}: no such checkpoint.\nHint: a run keeps its weights after the steps that"
            " training.snapshots lists; run the rule `train` again."
        )
    weights = load_file(path)
    mine = dict(model.named_parameters())
    unlike = [
        name
        for name in sorted(mine.keys() | weights.keys())
        if name not in mine or name not in weights or mine[name].shape != weights[name].shape
    ]
    if unlike:
        raise ValueError(
            f"{path}: {len(unlike)} parameters are not those of the model, the first {unlike[0]}.\n"
            "Hint: the checkpoint is of another architecture than the model that it is loaded into."
        )
    for name, parameter in mine.items():
        parameter.copy_(weights[name])
