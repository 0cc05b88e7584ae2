"""Write and read the manifest of a result, and say which one is damaged."""

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from geosd.files import DamagedFileError, write_json

MANIFEST = "manifest.json"
DIGEST = "digest"
"""Key of a manifest that holds the SHA-256 of all its other keys."""


class DamagedManifestError(DamagedFileError):
    """A manifest that is not what `geosd.provenance.manifest` makes; names the file."""


class _Keys(BaseModel):
    """What readers of a manifest rely on; steps add keys of their own."""

    model_config = ConfigDict(extra="allow", strict=True)

    code: dict[str, Any]
    packages: dict[str, str]
    device: dict[str, Any]
    wall_s: float
    peak_memory_bytes: dict[str, int]
    inputs: dict[str, str]
    outputs: dict[str, str]
    settings: dict[str, Any]


def write_manifest(path: Path, values: Mapping[str, Any]) -> None:
    """Write a manifest, with the hash that proves it when it is read."""
    plain = json.loads(json.dumps(values))  # as it will be read
    write_json(path, {**plain, DIGEST: _digest(plain)})


def read_manifest(folder: Path, name: str = MANIFEST) -> dict[str, Any]:
    """The manifest in a result's folder, as plain values without the hash of the manifest itself.

    Raises:
        DamagedManifestError: The file is absent or cut short, lacks a key, or was changed.
    """
    path = folder / name
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
        _Keys.model_validate(values)
        if values.pop(DIGEST, None) != _digest(values):
            raise ValueError("it was changed after it was written")
    except ValidationError as error:
        first = error.errors()[0]
        problem = f"{'.'.join(map(str, first['loc'])) or 'file'}: {first['msg']}"
    except (OSError, ValueError, RecursionError) as error:
        problem = str(error)
    else:
        return values
    raise DamagedManifestError(
        f"{path} is no whole manifest: {problem}.\nHint: remove {folder} and run the workflow"
        " again; it makes what is not there."
    )


def _digest(values: Mapping[str, Any]) -> str:
    text = json.dumps(values, sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(text.encode(errors="surrogateescape")).hexdigest()
