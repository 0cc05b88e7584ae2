"""Hashes: of files and folders in full, of plain values short enough for a folder's name."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

DIGITS = 10
"""Hexadecimal digits of a `digest`: 40 bits, enough to tell millions of settings apart."""


def sha256(path: Path | str) -> str:
    """The hex SHA-256 of a file, or of a folder: of its sorted (relative name, file hash) lines.

    Raises:
        FileNotFoundError: There is neither a file nor a folder at `path`.
    """
    path = Path(path)
    if path.is_dir():
        members = sorted(member for member in path.rglob("*") if member.is_file())
        lines = (f"{member.relative_to(path).as_posix()}\t{sha256(member)}\n" for member in members)
        return hashlib.sha256("".join(lines).encode()).hexdigest()
    if not path.exists():
        raise FileNotFoundError(
            f"{path}: an input of this step is missing.\nHint: let the workflow run the step; it"
            " makes inputs first."
        )
    with path.open("rb") as data:
        return hashlib.file_digest(data, "sha256").hexdigest()


def digest(value: Any) -> str:
    """The first `DIGITS` digits of the SHA-256 of a plain value, whatever the order of its keys.

    Example:
        >>> digest({"a": 1, "b": [2.0]}) == digest({"b": [2.0], "a": 1})
        True
    """
    text = json.dumps(value, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:DIGITS]
