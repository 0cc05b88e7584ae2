"""A result that another study has made from the same, by the same code: taken, not made again.

The step that could be spared says in its manifest what the result follows from, and which files it
is: `made_of` and `files`. Nothing else is believed; of a folder without them there is no twin.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import Any

import geosd
from geosd.files import copy
from geosd.provenance.manifest import package_versions, sha256

MANIFEST = "manifest.json"


def hashes(folder: Path, own: Collection[str] = ()) -> dict[str, str]:
    """Each file of a result and its SHA-256: the manifest's `files`.

    Args:
        folder: The result.
        own: Files in which it says whose it is; like the manifest, a twin writes its own.
    """
    files = sorted(path for path in folder.iterdir() if path.is_file())
    return {path.name: sha256(path) for path in files if path.name not in (MANIFEST, *own)}


def origin(
    made_of: Mapping[str, Any], out: Path, taken_from: Path | None, own: Collection[str] = ()
) -> dict[str, Any]:
    """What the manifest of a result says so that a twin can be found: see `twin` and `hashes`."""
    taken = None if taken_from is None else str(taken_from)
    return {"made_of": made_of, "files": hashes(out, own), "taken_from": taken}


def words_of(model: Path) -> dict[str, str]:
    """What a model's folder says beside its weights of how it reads and speaks, by its SHA-256."""
    names = ("config.json", "generation_config.json", "tokenizer.json", "tokenizer_config.json")
    return {name: sha256(model / name) for name in names if (model / name).is_file()}


def twin(others: Iterable[Path], out: Path, made_of: Mapping[str, Any]) -> Path | None:
    """The first of some results that is what a step would make now.

    Args:
        others: Where to look. One without a manifest is no result, or not finished.
        out: Where the step would make it; itself no twin.
        made_of: All that the result follows from, code and packages aside (plain values).

    Returns:
        A folder made of the same, by the code and packages at hand, whose files are still those
        that were made; None: there is none.
    """
    return next((at for at in others if at != out and _is_twin(at, made_of)), None)


def take(folder: Path, out: Path) -> dict[str, Any]:
    """Copy the files of a twin, and return its manifest."""
    told = _manifest(folder)
    for name in told["files"]:
        copy(folder / name, out / name)
    print(f"Taken from {folder}: made of the same, by the same code and packages.")
    return told


def _is_twin(folder: Path, made_of: Mapping[str, Any]) -> bool:
    told = _manifest(folder)
    if "files" not in told or told["made_of"] != json.loads(json.dumps(made_of)):
        return False
    if told.get("taken_from"):  # its manifest tells the code that took it
        return False
    sources = Path(geosd.__file__).parents[1]
    return (
        told["packages"] == package_versions()
        and all(_is_still(sources / name, of) for name, of in told["code"]["files"].items())
        and all(
            _is_still(folder / name, of) and Path(name).name == name
            for name, of in told["files"].items()
        )
    )


def _is_still(path: Path, digest: str | None) -> bool:
    return path.is_file() and not path.is_symlink() and sha256(path) == digest


def _manifest(folder: Path) -> dict[str, Any]:
    path = folder / MANIFEST
    return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
