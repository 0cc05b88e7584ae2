"""The check of each study of params.yaml, done once for all tests of a process.

Tests copy the repository's params.yaml, link to it, and change a line of it. Most studies are then
what they were, and were found right.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

SHARED = ("protocol", "models", "variants", "resources")
"""Sections that the check of any study reads."""
BASE_MODELS = Path("base_models")
RAW = (Path("data/raw"), Path("analysis/copied_answers"))
"""Folders of data that the file names."""

Check = Callable[[Any, str, Any], list[Any]]


def once(check: Check) -> Check:
    """`geosd.config.loading._study` that checks no second time what it has found right.

    What is right is a study with all else that its check reads, byte for byte.
    """
    right: set[tuple[str, str, str]] = set()
    shared: dict[int, tuple[Any, str]] = {}  # of the last file alone

    def checked(params: Any, name: str, source: Any) -> list[Any]:
        if id(source) not in shared:
            shared.clear()
            sections = {key: source.values.get(key) for key in SHARED}
            shared[id(source)] = source, _text([sections, _read_besides()])
        studies = source.values["studies"]
        entry = studies[name]
        parent = studies.get(entry.get("extends"))
        found = (name, _text([entry, parent]), shared[id(source)][1])
        reads_own_files = '"jsonl"' in found[1]  # which a test may write in between
        if found in right and not reads_own_files:
            return []
        mistakes = check(params, name, source)
        if not mistakes:
            right.add(found)
        return mistakes

    return checked


def _text(values: Any) -> str:
    return json.dumps(values, default=str)


def _read_besides() -> list[Any]:
    """What a check reads in the working directory besides params.yaml."""
    files = [BASE_MODELS / "SHA256SUMS", *sorted(BASE_MODELS.glob("*/*/config.json"))]
    content = [(file, file.read_bytes()) for file in files if file.is_file()]
    return [content, [sorted(folder.glob("*.jsonl")) for folder in RAW]]
