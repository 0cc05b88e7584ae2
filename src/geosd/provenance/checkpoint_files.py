"""The files of a checkpoint's folder that a program may load, and their hashes."""

import json
import time
from contextlib import suppress
from pathlib import Path

from geosd.files import LOADED, sha256, write_text

HASHES = Path(".snakemake/checkpoint_hashes.json")
"""File -> size, time of change in ns, inode and SHA-256, as they were when the hash was taken."""


SETTLED = 2.0
"""Seconds after which a clock surely shows another change of a file."""


def loaded_checkpoint_files(folder: Path) -> list[Path]:
    """The files of a checkpoint's folder that a program may load, sorted."""
    return sorted(p for p in folder.glob("[!.]*") if p.suffix in LOADED and p.is_file())


def hashes_of_checkpoint(folder: Path) -> dict[str, str]:
    """The SHA-256 of each file of a checkpoint's folder that a program may load, by its name.

    Each plan asks for tens of gigabytes. So a hash is kept with the file's size, time of change and
    inode, and taken anew where one differs. Empty where the folder is absent; what copies it says
    so.
    """
    kept: dict[str, list[object]] = {}
    with suppress(OSError, ValueError, TypeError):
        kept = dict(json.loads(HASHES.read_text(encoding="utf-8")))
    before = dict(kept)
    hashes = {}
    for file in loaded_checkpoint_files(folder):
        name, stat = str(file.absolute()), file.stat()
        found = [stat.st_size, stat.st_mtime_ns, stat.st_ino]
        known = kept.get(name)
        if not isinstance(known, list) or known[:-1] != found:
            known = [*found, sha256(file)]
        if time.time() - stat.st_mtime > SETTLED:
            kept[name] = known
        hashes[file.name] = str(known[-1])
    if kept != before:
        with suppress(OSError):  # a folder that is read alone
            write_text(HASHES, json.dumps(kept, indent=0, sort_keys=True))
    return hashes
