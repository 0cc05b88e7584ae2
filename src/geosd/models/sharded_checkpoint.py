"""The shards of a released checkpoint as one safetensors file, without loading a tensor."""

from __future__ import annotations

import json
import re
import shutil
import struct
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open

from geosd.files import atomic_write

INDEX = "model.safetensors.index.json"
SINGLE = "model.safetensors"
_NAME = re.compile(r"[\w.-]+\.safetensors")


class DamagedCheckpointError(ValueError):
    """A checkpoint whose files do not hold what they should."""


def shard_files(folder: Path) -> list[Path]:
    """The weight files of a checkpoint's folder, as its index names them.

    Raises:
        DamagedCheckpointError: There are no safetensors, the index is no index, or a file that it
            names is missing or would lie outside the folder.
    """
    index = folder / INDEX
    if not index.exists():
        names = {SINGLE}
    else:
        try:
            names = set(json.loads(index.read_text(encoding="utf-8"))["weight_map"].values())
            if not all(isinstance(name, str) and _NAME.fullmatch(name) for name in names):
                raise ValueError(f"it names {sorted(map(str, names))[:3]}")
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise DamagedCheckpointError(
                f"{index}: no index of safetensors: {error!r}; allowed are plain file names of this"
                " folder.\nHint: remove the folder and fetch it again."
            ) from error
    if missing := sorted(name for name in names if not (folder / name).is_file()):
        raise DamagedCheckpointError(
            f"{folder} lacks {', '.join(missing)}; only safetensors are read, never pickles.\n"
            "Hint: a folder for base.checkpoint holds config.json, tokenizer.json and the weights"
            " as *.safetensors."
        )
    return [folder / name for name in sorted(names)]


def join(shards: Sequence[Path], path: Path) -> None:
    """Write the tensors of all shards to one file, byte by byte in the types they have.

    The format is a header (length, then JSON with each tensor's place) and the tensors' bytes, so
    joining is a new header before the old bytes: it needs the disk's space and no memory.

    Args:
        shards: The files, whose tensors have different names.
        path: The one file; written whole or not at all.

    Raises:
        DamagedCheckpointError: A shard is damaged, or two hold the same tensor.
    """
    joined: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    bodies: list[tuple[Path, int]] = []
    end = 0
    for shard in shards:
        try:
            # The library checks lengths, places and types; what follows can rely on them.
            with safe_open(shard, "pt"):
                pass
        except SafetensorError as error:
            raise DamagedCheckpointError(
                f"{shard}: not a safetensors file: {error}.\nHint: remove it and fetch it again."
            ) from error
        with shard.open("rb") as file:
            (length,) = struct.unpack("<Q", file.read(8))
            header = json.loads(file.read(length))
        header.pop("__metadata__", None)
        if repeated := sorted(header.keys() & joined.keys()):
            raise DamagedCheckpointError(
                f"{shard}: holds {repeated[0]}, as another shard does.\nHint: the folder mixes two"
                " checkpoints; fetch it again."
            )
        for name, told in header.items():
            begin, stop = told["data_offsets"]
            joined[name] = {**told, "data_offsets": [begin + end, stop + end]}
        bodies.append((shard, 8 + length))
        end += shard.stat().st_size - 8 - length
    text = json.dumps(joined, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)  # tensors begin at multiples of 8
    with atomic_write(path) as temporary, temporary.open("wb") as out:
        out.write(struct.pack("<Q", len(text)) + text)
        for shard, start in bodies:
            with shard.open("rb") as file:
                file.seek(start)
                shutil.copyfileobj(file, out, 16 << 20)
