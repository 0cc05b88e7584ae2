"""Models and their tokenizers in folders that any Hugging Face program opens."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
import transformers
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import nn
from transformers import (
    AutoConfig,
    AutoModelForCausalLM,
    AutoTokenizer,
    GenerationConfig,
    PreTrainedConfig,
    PreTrainedModel,
    PreTrainedTokenizerBase,
)
from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING_NAMES
from transformers.utils import logging

from geosd.files import atomic_write, remake_hint, replace
from geosd.models.precision import cast_parameters
from geosd.provenance.checkpoint_files import LOADED, WEIGHTS

# A bar for each of a folder's few small files would bury the bars that say something in the log.
logging.disable_progress_bar()


class CheckpointError(ValueError):
    """A checkpoint whose tensors or code are not those of an architecture of transformers."""


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
        replace(file, folder / file.name)
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
        CheckpointError: The weights are not those of the architecture, or it is none of
            transformers' own.
    """
    tokenizer, _ = load_tokenizer(folder)
    model = load_causal_lm(folder, use_safetensors=True)
    if dtype != torch.float32:
        cast_parameters(model, dtype)
    return model.eval(), tokenizer


def load_causal_lm(folder: Path | str, **options: Any) -> PreTrainedModel:
    """Load a causal language model in float32, every tensor of which is the checkpoint's.

    transformers alone would draw missing tensors at random, and leave out those that it does not
    know.

    Args:
        folder: Of the checkpoint.
        options: Of `from_pretrained`: `device_map="meta"` checks the weights and loads none.

    Raises:
        CheckpointError: Tensors are missing, unknown, or of another shape than the architecture's;
            or a file is damaged.
    """
    with _named(folder):
        model, found = AutoModelForCausalLM.from_pretrained(
            folder,
            local_files_only=True,
            trust_remote_code=False,
            dtype=torch.float32,
            output_loading_info=True,
            ignore_mismatched_sizes=True,  # they are refused below, with the others
            **options,
        )
    shapes = {
        f"{name} ({list(got)}, expected {list(expected)})"
        for name, got, expected in found["mismatched_keys"]
    }
    problems = {
        "missing": found["missing_keys"],
        "unknown": found["unexpected_keys"],
        "of another shape": shapes,
    }
    if any(problems.values()):
        counts = (
            f"{len(names)} {problem}, the first {min(names)}"
            for problem, names in problems.items()
            if names
        )
        file = Path(folder, options.get("gguf_file", WEIGHTS))
        raise CheckpointError(
            f"{file if file.exists() else folder}: not the weights of {type(model).__name__} as"
            f" config.json has it, with {len(model.state_dict())} tensors: {'; '.join(counts)}.\n"
            "Hint: the files are of two checkpoints, or not all there: fetch or save the checkpoint"
            " again."
        )
    return model


def refuse_remote_code(folder: Path | str) -> None:
    """Refuse a checkpoint whose architecture is a program beside its weights.

    Raises:
        CheckpointError: config.json has an `auto_map`, and transformers does not know the
            architecture itself.
    """
    with _named(folder):
        config, _ = PreTrainedConfig.get_config_dict(folder, local_files_only=True)
    kind = config.get("model_type")
    if "auto_map" in config and kind not in MODEL_FOR_CAUSAL_LM_MAPPING_NAMES:
        raise CheckpointError(
            f"{folder}/config.json: the architecture {kind!r} is a program of the checkpoint's own"
            f" (auto_map), and transformers {transformers.__version__} has none of that name.\n"
            "Hint: only code of transformers is run; take a checkpoint whose model_type it knows."
        )


def load_tokenizer(folder: Path | str) -> tuple[PreTrainedTokenizerBase, GenerationConfig]:
    """Load a checkpoint's tokenizer and its generation settings, such as stop tokens.

    Raises:
        FileNotFoundError: The folder holds no model.
        CheckpointError: Its architecture is none of transformers' own.
    """
    folder = Path(folder)
    if not (folder / "config.json").exists():
        raise FileNotFoundError(
            f"{folder}: holds no model (config.json is missing).\nHint: the rule `base` trains the"
            " base models and the rule `train` the others; let the workflow run them."
        )
    refuse_remote_code(folder)
    local = {"local_files_only": True, "trust_remote_code": False}
    with _named(folder):
        tokenizer = AutoTokenizer.from_pretrained(folder, **local)
        if (folder / "generation_config.json").exists():
            return tokenizer, GenerationConfig.from_pretrained(folder, local_files_only=True)
        config = AutoConfig.from_pretrained(folder, **local)
        return tokenizer, GenerationConfig.from_model_config(config)


@contextmanager
def _named(folder: Path | str) -> Iterator[None]:
    """Say of whatever transformers, tokenizers or safetensors raise which checkpoint it is about.

    Raises:
        CheckpointError: A file of the folder cannot be read.
    """
    try:
        yield
    except Exception as error:  # tokenizers raises Exception itself
        files = ", ".join(sorted(f.name for f in Path(folder).glob("*") if f.suffix in LOADED))
        raise CheckpointError(
            f"{folder}: one of {files} cannot be read: {type(error).__name__}: {error}.\n"
            "Hint: fetch or save the checkpoint again."
        ) from error


def save_weights(model: nn.Module, path: Path | str, dtype: torch.dtype | None = None) -> None:
    """Save a model's parameters alone as one file; the same weights are the same bytes.

    A tied parameter is written once, under its first name.

    Args:
        model: The model.
        path: Of the file.
        dtype: What the file has; None: what the model has.
    """
    weights = {
        name: value.detach().to(dtype or value.dtype).contiguous()
        for name, value in model.named_parameters()
    }
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
    try:
        weights = load_file(path)
    except SafetensorError as error:
        raise CheckpointError(
            f"{path}: not a safetensors file: {error}.\n{remake_hint(path)}"
        ) from error
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
