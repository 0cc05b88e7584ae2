"""Models and their tokenizers in folders that any Hugging Face program opens."""

from __future__ import annotations

from pathlib import Path

import torch
from safetensors.torch import load_file, save_file
from torch import nn
from transformers import (
    AutoConfig,
    AutoModelForCausalLM,
    AutoTokenizer,
    GenerationConfig,
    PreTrainedModel,
    PreTrainedTokenizerBase,
)
from transformers.utils import logging

from geosd.files import atomic_write
from geosd.models.precision import cast_parameters

# A bar for each of a folder's few small files would bury the bars that say something in the log.
logging.disable_progress_bar()

WEIGHTS = "model.safetensors"


def save_model(
    model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, folder: Path | str
) -> None:
    """Save a checkpoint: a model and its tokenizer in a folder, weights as safetensors.

    The weights are renamed into place last: a folder that has them has everything. A missing
    folder is made.
    """
    folder = Path(folder)
    partial = folder / ".partial"
    model.save_pretrained(partial, max_shard_size="10TB")  # one file, whatever the model's size
    tokenizer.save_pretrained(partial)
    for file in sorted(partial.iterdir(), key=lambda file: file.name == WEIGHTS):
        file.replace(folder / file.name)
    partial.rmdir()


def load_model(
    folder: Path | str, dtype: torch.dtype = torch.float32
) -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
    """Load a checkpoint's model, in evaluation mode, and its tokenizer.

    Args:
        folder: Written by `save_model`, or by Hugging Face's own `save_pretrained`.
        dtype: Of the weights; buffers are float32.

    Raises:
        FileNotFoundError: The folder holds no model.
    """
    tokenizer, _ = load_tokenizer(folder)
    model = AutoModelForCausalLM.from_pretrained(
        folder, local_files_only=True, use_safetensors=True, dtype=torch.float32
    )
    if dtype != torch.float32:
        cast_parameters(model, dtype)
    return model.eval(), tokenizer


def load_tokenizer(folder: Path | str) -> tuple[PreTrainedTokenizerBase, GenerationConfig]:
    """Load a checkpoint's tokenizer and its generation settings, such as stop tokens.

    Raises:
        FileNotFoundError: The folder holds no model.
    """
    folder = Path(folder)
    if not (folder / "config.json").exists():
        raise FileNotFoundError(
            f"{folder}: holds no model (config.json is missing).\nHint: the rule `base` trains the"
            " base models and the rule `train` the others; let the workflow run them."
        )
    tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True)
    if (folder / "generation_config.json").exists():
        return tokenizer, GenerationConfig.from_pretrained(folder, local_files_only=True)
    config = AutoConfig.from_pretrained(folder, local_files_only=True)
    return tokenizer, GenerationConfig.from_model_config(config)


def save_weights(model: nn.Module, path: Path | str) -> None:
    """Save a model's parameters alone as one file; the same weights are the same bytes.

    A tied parameter is written once, under its first name.
    """
    weights = {name: value.detach().contiguous() for name, value in model.named_parameters()}
    with atomic_write(path) as temporary:
        save_file(weights, temporary, metadata={"format": "pt"})


@torch.no_grad()
def load_weights(model: nn.Module, path: Path | str) -> None:
    """Load the parameters that `save_weights` wrote into a model, exactly and in place.

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
    parameters = dict(model.named_parameters())
    shapes = {(name, parameter.shape) for name, parameter in parameters.items()}
    saved_shapes = {(name, value.shape) for name, value in weights.items()}
    if different := sorted({name for name, _ in shapes ^ saved_shapes}):
        raise ValueError(
            f"{path}: {len(different)} parameters are not those of the model, the first"
            f" {different[0]}.\nHint: the checkpoint is of another architecture than the model"
            " that it is loaded into."
        )
    for name, parameter in parameters.items():
        parameter.copy_(weights[name])
