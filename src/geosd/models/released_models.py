"""Released checkpoints of plain weights: from the hub at a commit, or from a folder."""

import json
import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path

import huggingface_hub
import torch
from huggingface_hub.errors import HfHubHTTPError, LocalEntryNotFoundError
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor
from transformers import PreTrainedModel

from geosd.files import atomic_write, copy_file
from geosd.models.load_and_save import (
    WEIGHTS,
    load_causal_lm,
    load_no_broken_tensors,
    load_tokenizer,
    tied_when_saved,
    two_heads_saved,
)

# Weights and plain text; a pickle (*.bin, *.pt) or a program (*.py) is never fetched or copied.
COPIED = ("*.json", "*.jinja")
FETCHED = ("*.safetensors", *COPIED)
NEEDED = ("config.json", "tokenizer.json")
INDEX = "model.safetensors.index.json"
_FILE_NAME = re.compile(r"[\w.-]+\.safetensors")


class DamagedReleaseError(ValueError):
    """A released checkpoint whose files do not hold what they should."""


class ReleaseNotFoundError(RuntimeError):
    """A released checkpoint is neither on this machine nor to be had from the network."""


def download_checkpoint(repo: str, revision: str) -> Path:
    """Download a released checkpoint from the hub at a commit, unless it is whole in the cache.

    So a machine without a network works from a filled cache (HF_HOME, or HF_HUB_CACHE). The result
    is `<cache>/models--owner--name/snapshots/<revision>`, with links into the cache;
    ReleaseNotFoundError if it is not here and cannot be fetched.
    """
    if folder := cached_checkpoint(repo, revision):
        return folder
    try:
        return _snapshot(repo, revision)
    except (HfHubHTTPError, LocalEntryNotFoundError, OSError) as error:
        raise ReleaseNotFoundError(
            f"{repo} at {revision} is not in the cache and cannot be fetched:"
            f" {type(error).__name__}: {error}\nHint: without network, fill the cache elsewhere"
            f" (`hf download {repo} --revision {revision}`) and copy it, or name a folder with the"
            " files as base.checkpoint.folder."
        ) from error


def cached_checkpoint(repo: str, revision: str) -> Path | None:
    """The folder of a released checkpoint in the hub's cache; None where it is not there whole."""
    with suppress(LocalEntryNotFoundError, DamagedReleaseError):  # not here, or not whole
        folder = _snapshot(repo, revision, local_files_only=True)
        if all((folder / name).is_file() for name in NEEDED):
            released_weight_files(folder)
            return folder
    return None


def _snapshot(repo: str, revision: str, **options: bool) -> Path:
    pinned = {"revision": revision, "allow_patterns": list(FETCHED)}
    return Path(huggingface_hub.snapshot_download(repo, **pinned, **options))


def copy_released_model(folder: Path, out: Path, links_into: Path | None = None) -> None:
    """Copy a released checkpoint's configuration, tokenizer and weights, the weights as one file.

    Nothing is loaded, so the tensors keep their types and bytes. `model.safetensors` is there last.
    Links may lead into the folder `links_into`; None allows none that leave `folder`.

    Raises:
        DamagedReleaseError: Something is missing or damaged, or a link leads elsewhere.
        CheckpointError: The weights are not those of the architecture, or not finite; a token has
            no row of the embedding; or the architecture is none of transformers' own.
    """
    if missing := [name for name in NEEDED if not (folder / name).is_file()]:
        raise DamagedReleaseError(
            f"{folder} lacks {', '.join(missing)}.\nHint: base.checkpoint.folder is a folder as"
            " Hugging Face programs write it."
        )
    _refuse_links(folder, folder, links_into or folder)
    load_tokenizer(folder)
    weights = merge_released_files(released_weight_files(folder))
    model = load_causal_lm(folder, use_safetensors=True, device_map="meta")
    _refuse_two_heads(model, weights, folder)
    for pattern in COPIED:
        for file in sorted(folder.glob(pattern)):
            if not file.name.endswith(".index.json"):
                copy_file(file, out / file.name)
    with atomic_write(out / WEIGHTS) as temporary:
        save_file(weights, temporary, metadata={"format": "pt"})


def _refuse_two_heads(model: PreTrainedModel, weights: Mapping[str, Tensor], folder: Path) -> None:
    """Refuse weights that hold another head than the embedding that it is tied to.

    `model` is theirs, without values. Where both are the same, either is the head.
    """
    for head, embedding in tied_when_saved(model).items():
        # Of a part of a larger model the file has names with another beginning.
        heads, embeddings = (
            [tensor for name, tensor in weights.items() if name.split(".")[-2:] == end]
            for end in (head.split(".")[-2:], embedding.split(".")[-2:])
        )
        if not all(torch.equal(one, other) for one in heads for other in embeddings):
            raise two_heads_saved(folder, head, embedding)


def _refuse_links(folder: Path, *allowed: Path) -> None:
    """Refuse a folder where a file is a link that leads out of the allowed folders."""
    for file in sorted(path for pattern in FETCHED for path in folder.glob(pattern)):
        target = file.resolve()
        if not any(target.is_relative_to(root.resolve()) for root in allowed):
            raise DamagedReleaseError(
                f"{file} is a link to {target}, outside its folder.\nHint: base.checkpoint.folder"
                " holds files; `cp -rL` copies what links lead to. A snapshot of the hub's cache is"
                " named by base.checkpoint.repo and revision."
            )


def released_weight_files(folder: Path) -> list[Path]:
    """The weight files of a released checkpoint's folder: one, or those that its index names.

    Raises:
        DamagedReleaseError: There are no safetensors, the index is no index, or a file that it
            names is missing or would lie outside the folder.
    """
    index = folder / INDEX
    names = {WEIGHTS}
    if index.exists() and not (folder / WEIGHTS).exists():  # transformers' order
        try:
            names = set(json.loads(index.read_text(encoding="utf-8"))["weight_map"].values())
            if not all(isinstance(name, str) and _FILE_NAME.fullmatch(name) for name in names):
                raise ValueError(f"it names {sorted(map(str, names))[:3]}")
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise DamagedReleaseError(
                f"{index}: no index of safetensors: {error!r}; allowed are plain file names of this"
                " folder.\nHint: remove the folder and fetch it again."
            ) from error
    if missing := sorted(name for name in names if not (folder / name).is_file()):
        raise DamagedReleaseError(
            f"{folder} lacks {', '.join(missing)}; only safetensors are read, never pickles.\n"
            "Hint: a folder for base.checkpoint holds config.json, tokenizer.json and the weights"
            " as *.safetensors."
        )
    return [folder / name for name in sorted(names)]


def merge_released_files(files: Iterable[Path]) -> dict[str, Tensor]:
    """The tensors of a released checkpoint's weight files, mapped and not read, types unchanged.

    Raises:
        DamagedReleaseError: A file is damaged, or two hold the same tensor.
        CheckpointError: A tensor has values that are no weights.
    """
    tensors: dict[str, Tensor] = {}
    for file in files:
        try:
            part = load_file(file)
        except SafetensorError as error:
            raise DamagedReleaseError(
                f"{file}: not a safetensors file: {error}.\nHint: remove it and fetch it again."
            ) from error
        if repeated := sorted(part.keys() & tensors.keys()):
            raise DamagedReleaseError(
                f"{file}: holds {repeated[0]}, as another file does.\nHint: the folder mixes two"
                " checkpoints; fetch it again."
            )
        load_no_broken_tensors(part.items(), file)
        tensors |= part
    return tensors
