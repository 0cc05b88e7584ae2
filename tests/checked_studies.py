"""The check of all studies of the repository's params.yaml, done once for all tests of a process.

A project that a test copies has the same file, and so has a folder that links to it.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
OWN = ROOT / "params.yaml"
BASE_MODELS = Path("base_models")
RAW = (Path("data/raw"), Path("analysis/copied_answers"))
"""Folders of data that the file names."""

Check = Callable[[Any, Any], list[Any]]


def once(check: Check) -> Check:
    """`geosd.config.loading._of_studies` that checks no second time what it has found right.

    What is right is the own file, byte for byte, with all else that the check reads.
    """
    right: set[tuple[Any, ...]] = set()

    def checked(params: Any, source: Any) -> list[Any]:
        if source.file.read_bytes() != OWN.read_bytes():
            return check(params, source)
        found = _read_besides()
        if found in right:
            return []
        mistakes = check(params, source)
        if not mistakes:
            right.add(found)
        return mistakes

    return checked


def _read_besides() -> tuple[Any, ...]:
    """What a check reads in the working directory besides params.yaml."""
    files = [BASE_MODELS / "SHA256SUMS", *sorted(BASE_MODELS.glob("*/*/config.json"))]
    content = tuple((file, file.read_bytes()) for file in files if file.is_file())
    return content, tuple(tuple(sorted(folder.glob("*.jsonl"))) for folder in RAW)
