"""Read the manifest of a result, and say which one is damaged."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

MANIFEST = "manifest.json"


class DamagedManifestError(ValueError):
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
    settings: dict[str, Any]


def read_manifest(folder: Path) -> dict[str, Any]:
    """The manifest of a result's folder, as plain values.

    Raises:
        DamagedManifestError: The file is absent or cut short, or lacks a key.
    """
    path = folder / MANIFEST
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
        _Keys.model_validate(values)
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
