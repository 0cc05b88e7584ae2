"""Checks of a checkpoint's folder, before anything of it is loaded."""

import json
import math
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import transformers
from safetensors import SafetensorError, safe_open
from transformers import PreTrainedConfig
from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING_NAMES

from geosd.files import LOADED
from geosd.rust_panics import is_failure_or_rust_panic

PACKAGE = (
    "config.json asks for a package that is not installed (quantization_config, or an"
    " implementation of attention); take the checkpoint with plain weights and without it."
)
ADAPTER_FILES = ("adapter*", "*_adapter.*", "*_adapters.*")
"""Files of adapters, as peft, AdapterHub and MLX call them."""
_LAYERS = re.compile(
    r"(n|num)_((hidden|decoder|encoder)_)?(layers?|blocks)|(de|en)coder_layers|depth"
)
"""Keys of config.json that say how many layers are built."""
MOST_GROWTH = 10_000
"""Times as long as a text that a tokenizer may make of it; published ones stay below a hundred."""
ALWAYS_BUILT = 64
"""Layers that are built whatever the weights are, to name what is missing."""


class CheckpointError(ValueError):
    """A checkpoint whose tensors, token ids or code are not those of a model of transformers."""


@contextmanager
def naming_checkpoint(folder: Path | str) -> Iterator[None]:
    """Say of whatever is raised inside, as a CheckpointError, which checkpoint it is about."""
    try:
        yield
    except BaseException as error:
        # tokenizers raises Exception itself, and where its Rust panics not even that.
        if not is_failure_or_rust_panic(error):
            raise
        hint = PACKAGE if isinstance(error, ImportError) else "fetch or save the checkpoint again."
        files = ", ".join(sorted(f.name for f in Path(folder).glob("*") if f.suffix in LOADED))
        raise CheckpointError(
            f"{folder}: one of {files} cannot be read: {type(error).__name__}: {error}.\n"
            f"Hint: {hint}"
        ) from error


def refuse_remote_code(folder: Path | str) -> None:
    """Refuse a checkpoint that names a program: next to its weights, or on the hub.

    Raises:
        CheckpointError: config.json is no object; it has an `auto_map`, and transformers does not
            know the architecture itself; or its attention is a kernel of the hub.
    """
    with naming_checkpoint(folder):
        config, _ = PreTrainedConfig.get_config_dict(folder, local_files_only=True)
        if not isinstance(config, dict):
            raise ValueError(f"config.json holds {config!r:.40}, not an object")
    kernels = [v for k, v in config.items() if "_implementation" in k and "/" in str(v)]
    if kernels:
        raise CheckpointError(
            f"{folder}/config.json: the implementation {kernels[0]} is a program of the hub; only"
            " code of transformers is run.\nHint: take the key out of config.json."
        )
    kind = config.get("model_type")
    if "auto_map" in config and kind not in MODEL_FOR_CAUSAL_LM_MAPPING_NAMES:
        raise CheckpointError(
            f"{folder}/config.json: the architecture {kind!r} is a program of the checkpoint's own"
            f" (auto_map), and transformers {transformers.__version__} has none of that name.\n"
            "Hint: only code of transformers is run; take a checkpoint whose model_type it knows."
        )


def refuse_adapter_checkpoint(folder: Path | str) -> None:
    """Refuse a folder that holds adapters next to a model, or in its place.

    With peft installed transformers applies them, and without it does not: the same files would be
    two models. CheckpointError names the first.
    """
    found = sorted(
        file for pattern in ADAPTER_FILES for file in Path(folder).glob(pattern) if file.is_file()
    )
    if found:
        raise CheckpointError(
            f"{found[0]}: an adapter beside the weights; allowed are plain weights, with the"
            " adapter merged or without it.\nHint: merge it (peft's merge_and_unload, then"
            " save_pretrained), or move its files out of the folder."
        )


def refuse_incomplete_checkpoint(folder: Path | str) -> None:
    """Refuse a config.json with more layers than the weights have tensors, before any is built.

    A folder without weights has none to compare with, and damaged ones are named by what reads
    them.

    Raises:
        CheckpointError: There are more; a number of layers is named with its key.
    """
    with naming_checkpoint(folder):
        config, _ = PreTrainedConfig.get_config_dict(folder, local_files_only=True)
    tensors = 0
    for file in Path(folder).glob("*.safetensors"):
        with suppress(SafetensorError, OSError), safe_open(file, "pt") as weights:
            tensors += len(weights.keys())
    for key, layers in _numbers_of_layers(config):
        if tensors and layers > max(tensors, ALWAYS_BUILT):
            raise CheckpointError(
                f"{folder}/config.json: {key} is {layers}, and the weights are {tensors} tensors;"
                " a layer has at least one.\nHint: the files are of two checkpoints: fetch or save"
                " the checkpoint again."
            )


HEADS_ALONE = {"final_logit_softcapping": None, "logit_scale": 1, "logits_scaling": 1}
"""What an architecture does to the output head's product, as its configuration says -> nothing."""


def refuse_other_logits(config: PreTrainedConfig, name: Path | str) -> None:
    """Refuse a model whose logits are more than its output head's product.

    Losses here multiply hidden states by the head, chunk by chunk, and would be those of another
    model: Gemma 2 caps its logits, Cohere and Granite scale them.

    Raises:
        CheckpointError: The configuration caps or scales logits; names the key.
    """
    text = config.get_text_config()
    for key, plain in HEADS_ALONE.items():
        value = getattr(text, key, None)
        if value not in (None, plain):
            raise CheckpointError(
                f"{name}: {key} is {value} in config.json, so that the model's logits are not the"
                " product of hidden states and output head, which the losses here compute. Allowed"
                f" is {plain}, or no such key.\nHint: take a model of another family; Qwen, Olmo,"
                " Llama and Mistral have none."
            )


def _numbers_of_layers(config: Any) -> Iterator[tuple[str, int]]:
    """Each number of layers in a configuration and in those inside it, with its key."""
    for key, value in config.items():
        if isinstance(value, dict):
            yield from _numbers_of_layers(value)
        elif _LAYERS.fullmatch(key) and isinstance(value, int | float):
            yield key, value


def refuse_checkpoint_tokenizer(folder: Path | str) -> None:
    """Refuse a tokenizer that makes texts much longer, or that draws how it cuts them.

    A replacement by a longer text multiplies what the next one gets: 34 that double make 17 GB of a
    letter, already while transformers loads the tokenizer. `dropout` of its merges encodes one
    prompt in many ways.

    Raises:
        CheckpointError: tokenizer.json has such parts; a file that is no JSON is named by what
            reads it.
    """
    file = Path(folder, "tokenizer.json")
    try:
        parts = json.loads(file.read_bytes())
        dropout = parts["model"].get("dropout")
        growths = {name: _growth(parts.get(name)) for name in ("normalizer", "decoder")}
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return
    for name, growth in growths.items():
        if growth > MOST_GROWTH:
            raise CheckpointError(
                f"{file}: the {name} can make a text {growth:.2g} times as long; allowed are"
                f" {MOST_GROWTH} times.\nHint: its replacements multiply each other; take the"
                " tokenizer of the release."
            )
    if dropout:
        raise CheckpointError(
            f"{file}: model.dropout is {dropout}, so that tokens are drawn at random; allowed is"
            " null.\nHint: it is a means of pretraining; set it to null."
        )


def _growth(part: Any) -> float:
    """How many times as long as its text what a part of tokenizer.json makes of it can be."""
    if not isinstance(part, dict):
        return 1
    inside = [*(part.get("normalizers") or ()), *(part.get("decoders") or ())]
    growth = math.prod(map(_growth, inside), start=1.0)
    if part.get("type") == "Replace":
        replaced = part["pattern"].get("String", "")
        # A pattern can be found at every character, and between them.
        least = len(replaced) if replaced else 0.5
        growth *= max(1.0, len(part["content"]) / least)
    return growth
