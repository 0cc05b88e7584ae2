"""Released checkpoints: from the hub at a commit, from a folder, or from an installed package."""

from __future__ import annotations

import hashlib
import importlib.util
import shutil
from pathlib import Path

import torch
from transformers import (
    AutoModelForCausalLM,
    AutoTokenizer,
    PreTrainedModel,
    PreTrainedTokenizerBase,
)

from geosd.models.sharded_checkpoint import SINGLE, DamagedCheckpointError, join, shard_files

# Weights and plain text; a pickle (*.bin, *.pt) or a program (*.py) is never fetched or copied.
FETCHED = ("*.safetensors", "*.json", "*.jinja")
COPIED = ("*.json", "*.jinja")
NEEDED = ("config.json", "tokenizer.json")


class CheckpointNotFoundError(RuntimeError):
    """A checkpoint or a file is not here and cannot be fetched."""


def download_checkpoint(repo: str, revision: str) -> Path:
    """The folder of a repository of the hub at a commit, fetched where it is not here yet.

    What is here whole is taken without a word to the network, so a machine without one works from
    a filled cache (HF_HOME, or HF_HUB_CACHE).

    Args:
        repo: `owner/name`.
        revision: A commit: 40 hexadecimal digits.

    Raises:
        CheckpointNotFoundError: It is not here, and it cannot be fetched.
    """
    import huggingface_hub
    from huggingface_hub.errors import HfHubHTTPError, LocalEntryNotFoundError

    try:
        folder = Path(
            huggingface_hub.snapshot_download(
                repo, revision=revision, allow_patterns=list(FETCHED), local_files_only=True
            )
        )
        if all((folder / name).is_file() for name in NEEDED):
            shard_files(folder)
            return folder
    except (LocalEntryNotFoundError, DamagedCheckpointError):
        pass  # not here, or not whole
    try:
        return Path(
            huggingface_hub.snapshot_download(repo, revision=revision, allow_patterns=list(FETCHED))
        )
    except (HfHubHTTPError, LocalEntryNotFoundError, OSError) as error:
        raise CheckpointNotFoundError(
            f"{repo} at {revision} is not in the cache and cannot be fetched:"
            f" {type(error).__name__}: {error}\nHint: without network, fill the cache elsewhere"
            f" (`hf download {repo} --revision {revision}`) and copy it, or name a folder with the"
            " files as base.checkpoint.folder."
        ) from error


def copy_checkpoint(folder: Path, out: Path) -> None:
    """Copy a released checkpoint's configuration, tokenizer and weights, the weights as one file.

    Nothing is loaded, so the types and the bytes of the tensors stay what they were.

    Args:
        folder: Holds config.json, tokenizer.json and safetensors.
        out: Gets them; `model.safetensors` last.

    Raises:
        DamagedCheckpointError: Something is missing or damaged.
    """
    if missing := [name for name in NEEDED if not (folder / name).is_file()]:
        raise DamagedCheckpointError(
            f"{folder} lacks {', '.join(missing)}.\nHint: base.checkpoint.folder is a folder as"
            " Hugging Face programs write it."
        )
    shards = shard_files(folder)
    out.mkdir(parents=True, exist_ok=True)
    for pattern in COPIED:
        for file in sorted(folder.glob(pattern)):
            if not file.name.endswith(".index.json"):
                shutil.copyfile(file, out / file.name)
    join(shards, out / SINGLE)


def load_gguf_package(
    package: str, file: str, sha256: str
) -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
    """The model that an installed package carries as a GGUF file, its weights dequantised.

    The package is found and not imported, so nothing that it depends on is needed.

    Args:
        package: Name of the Python package.
        file: The GGUF file in its folder.
        sha256: The file's.

    Raises:
        CheckpointNotFoundError: The package, its file, or the reader of GGUF is not installed.
        DamagedCheckpointError: The file has another hash.
    """
    found = importlib.util.find_spec(package)
    folder = Path(found.submodule_search_locations[0]) if found is not None else None
    if folder is None or not (folder / file).is_file() or not importlib.util.find_spec("gguf"):
        raise CheckpointNotFoundError(
            f"{file} of the Python package {package!r}, or the package 'gguf' that reads it, is not"
            " installed.\nHint: envs/install.sh smollm2 installs both; `make run STUDY=smollm2`"
            " does so by itself."
        )
    with (folder / file).open("rb") as opened:
        got = hashlib.file_digest(opened, "sha256").hexdigest()
    if got != sha256:
        raise DamagedCheckpointError(
            f"{folder / file}: SHA-256 is {got}, expected {sha256}.\nHint: install the version that"
            " pyproject.toml and envs/install.sh name, or pin the new file in params.yaml."
        )
    tokenizer = AutoTokenizer.from_pretrained(folder, gguf_file=file, local_files_only=True)
    read = AutoModelForCausalLM.from_pretrained(
        folder, gguf_file=file, dtype=torch.float32, local_files_only=True
    )
    # What it was read from must not stand in the configuration: the saved weights are plain.
    config = read.config.__class__(
        **{k: v for k, v in read.config.to_dict().items() if k != "quantization_config"}
    )
    model = read.__class__(config)
    model.load_state_dict(read.state_dict())
    model.generation_config = read.generation_config
    return model.float(), tokenizer
