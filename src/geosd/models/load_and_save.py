"""Models and their tokenizers in folders that any Hugging Face program opens."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor, nn
from transformers import (
    AutoConfig,
    AutoModelForCausalLM,
    AutoTokenizer,
    GenerationConfig,
    PreTrainedModel,
    PreTrainedTokenizerBase,
)
from transformers.utils import logging

from geosd.files import WEIGHTS, atomic_write, remake_file_hint, replace_file
from geosd.models.adapters import without_base
from geosd.models.checkpoint_checks import (
    CheckpointError,
    naming_checkpoint,
    refuse_adapter_checkpoint,
    refuse_checkpoint_tokenizer,
    refuse_incomplete_checkpoint,
    refuse_other_logits,
    refuse_remote_code,
)
from geosd.models.precision import cast_parameters
from geosd.problems.encoding import end_tokens

# A bar for each of a folder's few small files would bury the bars that say something in the log.
logging.disable_progress_bar()

PLAIN = "fetch the checkpoint again, as plain weights: of a quantized one the scales are not read."
DIVERGED = "the training diverged: lower training.learning_rate, or raise the damping."


def save_model(
    model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, folder: Path | str
) -> None:
    """Save a checkpoint: a model and its tokenizer in a folder, weights as safetensors.

    The weights are renamed into place last: a folder that has them has everything. CheckpointError
    if one is not finite.
    """
    folder = Path(folder)
    load_no_broken_tensors(model.named_parameters(), folder / WEIGHTS, DIVERGED)
    partial = folder / ".partial"
    model.save_pretrained(partial, max_shard_size="10TB")  # one file, whatever the model's size
    tokenizer.save_pretrained(partial)
    for file in sorted(partial.iterdir(), key=lambda file: file.name == WEIGHTS):
        replace_file(file, folder / file.name)
    partial.rmdir()


def load_model(
    folder: Path | str, dtype: torch.dtype = torch.float32
) -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
    """Load a checkpoint's model, in evaluation mode, weights as `dtype`, and its tokenizer.

    Raises:
        FileNotFoundError: The folder holds no model.
        CheckpointError: The weights are not those of the architecture, or not finite, or it is none
            of transformers' own.
    """
    tokenizer, _ = load_tokenizer(folder)
    for file in sorted(Path(folder).glob("*.safetensors")):
        with naming_checkpoint(folder):
            tensors = load_file(file)
        load_no_broken_tensors(tensors.items(), file)
    model = load_causal_lm(folder, use_safetensors=True)
    if dtype != torch.float32:
        cast_parameters(model, dtype)
    return model.eval(), tokenizer


def load_causal_lm(folder: Path | str, **options: Any) -> PreTrainedModel:
    """Load a causal language model in float32, every tensor of which is the checkpoint's.

    transformers alone would draw missing tensors at random, and leave out unknown ones. `options`
    are those of `from_pretrained`: `device_map="meta"` checks the weights and loads none.

    Raises:
        CheckpointError: Tensors are missing, unknown, or of another shape than the architecture's;
            the head is not the embedding that it is tied to; logits are capped or scaled; or a file
            is damaged.
    """
    with naming_checkpoint(folder):
        model, found = AutoModelForCausalLM.from_pretrained(
            folder,
            local_files_only=True,
            trust_remote_code=False,
            dtype=torch.float32,
            output_loading_info=True,
            ignore_mismatched_sizes=True,  # they are refused below, with the others
            **options,
        )
    refuse_other_logits(model.config, folder)
    problems = {
        "missing": found["missing_keys"],
        "unknown": found["unexpected_keys"],
        "of another shape": [
            f"{name} ({list(got)}, expected {list(expected)})"
            for name, got, expected in found["mismatched_keys"]
        ],
    }
    if counts := [
        f"{len(names)} {problem}, the first {min(names)}"
        for problem, names in problems.items()
        if names
    ]:
        file = Path(folder, options.get("gguf_file", WEIGHTS))
        raise CheckpointError(
            f"{file if file.exists() else folder}: not the weights of {type(model).__name__} as"
            f" config.json has it, with {len(model.state_dict())} tensors: {'; '.join(counts)}.\n"
            "Hint: the files are of two checkpoints, or not all there: fetch or save the checkpoint"
            " again."
        )
    for head, embedding in tied_when_saved(model).items():
        values = model.get_parameter(head)
        if not values.is_meta and values is not model.get_parameter(embedding):
            raise two_heads_saved(folder, head, embedding)
    return model


def tied_when_saved(model: PreTrainedModel) -> dict[str, str]:
    """The parameters that a model's configuration ties to others: the head's name -> embedding."""
    return model.get_expanded_tied_weights_keys(all_submodels=True)


def two_heads_saved(folder: Path | str, head: str, embedding: str) -> CheckpointError:
    """The error of files that hold two tensors which their configuration has as one."""
    return CheckpointError(
        f"{folder}: config.json ties {head} to {embedding} (tie_word_embeddings), and the weights"
        " hold two that differ: programs would take one or the other.\nHint: where the head was"
        " trained, write tie_word_embeddings: false into config.json; else save the checkpoint"
        " again."
    )


def load_no_broken_tensors(
    tensors: Iterable[tuple[str, Tensor]], file: Path, hint: str = PLAIN
) -> None:
    """Refuse, by CheckpointError, tensors of integers or booleans, or with NaN or infinities.

    A tensor is read once, where it lies: .06 s of processor time a GB, and no memory. `file` holds
    the tensors, or is to hold them.
    """
    for name, tensor in tensors:
        if not tensor.is_floating_point():
            problem = f"has the type {str(tensor.dtype).removeprefix('torch.')}"
        else:
            values = tensor.detach() if tensor.itemsize > 1 else tensor.detach().float()
            extremes = values.aminmax() if tensor.numel() else ()
            if all(extreme.float().isfinite() for extreme in extremes):
                continue
            problem = "has values that are not finite in float32"
        raise CheckpointError(
            f"{file}: the tensor {name} {problem}; allowed are finite floating-point numbers.\n"
            f"Hint: {hint}"
        )


def load_tokenizer(folder: Path | str) -> tuple[PreTrainedTokenizerBase, GenerationConfig]:
    """Load a checkpoint's tokenizer and its generation settings, such as stop tokens.

    Raises:
        FileNotFoundError: The folder holds no model.
        CheckpointError: Its architecture is none of transformers' own, it has an adapter or more
            layers than weights, or a token has an id that is no row of the embedding; or the
            tokenizer cannot be read, has no bound or draws at random.
    """
    folder = Path(folder)
    if not (folder / "config.json").exists():
        raise FileNotFoundError(
            f"{folder}: holds no model (config.json is missing).\nHint: the rule `base` trains the"
            " base models and the rule `train` the others; let the workflow run them."
        )
    refuse_remote_code(folder)
    refuse_adapter_checkpoint(folder)
    refuse_incomplete_checkpoint(folder)
    refuse_checkpoint_tokenizer(folder)
    local = {"local_files_only": True, "trust_remote_code": False}
    with naming_checkpoint(folder):
        tokenizer = AutoTokenizer.from_pretrained(folder, **local)
        config = AutoConfig.from_pretrained(folder, **local)
        generation = GenerationConfig.from_model_config(config)
        if (folder / "generation_config.json").exists():
            generation = GenerationConfig.from_pretrained(folder, local_files_only=True)
        rows = config.get_text_config().vocab_size
    refuse_other_logits(config, folder)
    named = list(tokenizer.get_vocab().items())
    named += [("eos_token_id", end) for end in end_tokens(generation)]
    for name, number in named:
        if type(number) is not int or not 0 <= number < rows:
            raise CheckpointError(
                f"{folder}: {name!r} has the token id {number!r}; allowed are integers from 0 to"
                f" {rows - 1}, the rows of the embedding.\nHint: the tokenizer or"
                " generation_config.json is of another model, or tokenizer_config.json is missing;"
                " fetch or save the checkpoint again."
            )
    return tokenizer, generation


def save_weights(model: nn.Module, path: Path | str, dtype: torch.dtype | None = None) -> None:
    """Save a model's parameters alone as one file; the same weights are the same bytes.

    A tied parameter is written once, under its first name; `dtype` None is the model's own type.
    CheckpointError if a weight is not finite.
    """
    weights = {
        name: value.to(dtype or value.dtype).contiguous() for name, value in weights_as_saved(model)
    }
    load_no_broken_tensors(weights.items(), Path(path), DIVERGED)
    with atomic_write(path) as temporary:
        save_file(weights, temporary, metadata={"format": "pt"})


@torch.no_grad()
def weights_as_saved(
    model: nn.Module, dtype: torch.dtype | None = None
) -> Iterator[tuple[str, Tensor]]:
    """A checkpoint's tensors of a model: each parameter once, whole, under its name there.

    A tied head is its embedding, and adapters are merged into their layers. A sharded parameter is
    gathered when its turn comes, a collective: every process that holds a part of the model runs
    through this in step with the others. `dtype` is the tensors' type, None their own; a shard is
    cast before it is gathered, so that no more bytes travel than arrive.
    """
    for name, parameter in model.named_parameters():
        value = parameter.detach()
        if callable(getattr(value, "full_tensor", None)):
            value = value.to(dtype or value.dtype).full_tensor()
        named = without_base(name, value, model)
        if named is not None:
            weight_name, weight = named
            yield weight_name, weight.to(dtype or weight.dtype)


@torch.no_grad()
def load_weights(model: nn.Module, path: Path | str) -> None:
    """Load the parameters that `save_weights` wrote into a model, exactly and in place.

    Raises:
        FileNotFoundError: There is no such file.
        ValueError: The file's parameters are not those of the model, or not finite.
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
            f"{path}: not a safetensors file: {error}.\n{remake_file_hint(path)}"
        ) from error
    load_no_broken_tensors(weights.items(), path, remake_file_hint(path).removeprefix("Hint: "))
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
