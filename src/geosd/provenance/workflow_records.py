"""Snakemake's record of an output: what it was made from. Its next plan compares it with today."""

import base64
import json
import os
import re
from pathlib import Path

from geosd.files import write_text

RECORDS = Path(".snakemake/metadata")
_DIGEST = re.compile(r"'code-[0-9a-f]+'")
"""How a record has a digest of code among its params."""


def record_path(output: str) -> Path:
    """Where Snakemake keeps its record of an output: base64, cut to what a file's name may hold."""
    longest = os.pathconf(".", "PC_NAME_MAX") - 1
    name = base64.urlsafe_b64encode(output.encode()).decode()
    parts = [name[i : i + longest] for i in range(0, len(name), longest)]
    return RECORDS.joinpath(*(f"@{part}" for part in parts[:-1]), parts[-1])


def record_code(output: str, digest: str) -> None:
    """Let Snakemake's record of an output say which code made it, where there is a record."""
    path = record_path(output)
    if not path.is_file():
        return
    record = json.loads(path.read_text(encoding="utf-8"))
    before = record["params"] or []
    params = sorted(repr(digest) if _DIGEST.fullmatch(param) else param for param in before)
    if params != before:
        write_text(path, json.dumps({**record, "params": params}))
