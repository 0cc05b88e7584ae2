"""Times of results that were copied, brought into order where contents say that nothing changed.

Snakemake makes a result again where an input is newer, and compares contents of small files alone.
Copies by `scp -r`, archives and object stores give files new times in any order, so hundreds of
GPU-hours would be planned again. A manifest has the hash of each input and output. Where an input
is newer than what was made from it, and its contents are those that the manifest recorded, the
result is given the time of the input. The workflow calls this whenever it plans.
"""

import os
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from pathlib import Path

from geosd.files import sha256
from geosd.provenance.manifest import DamagedManifestError, read_manifest

LARGE = 1 << 30
"""Bytes of contents that take a second or more to compare."""


def order_times(
    manifests: Iterable[Path], say: Callable[[str], None] = lambda text: None
) -> list[Path]:
    """Give results that are older than an unchanged input the time of that input.

    Where an input is not what the result was made from, its time is left if it is newer, so that
    Snakemake makes the result again; an older one, as a pool that was made again and then copied,
    gets the time of now.

    Args:
        manifests: The manifests of a study, each after those of the results that it reads.
        say: Gets a line before contents are compared that take long.

    Returns:
        The manifests whose results got another time.

    Raises:
        PermissionError: The results belong to somebody else.
    """
    compared = cache(_Contents(say).sha256)
    recorded: dict[str, str] = {}
    ordered = []
    for path in manifests:
        try:
            manifest = read_manifest(path.parent, path.name)
        except DamagedManifestError:  # also of a job that has not run
            continue
        outputs = [path, *(path.parent / name for name in manifest["outputs"])]
        recorded |= {str(path.parent / name): h for name, h in manifest["outputs"].items()}
        if _brought_into_order(manifest["inputs"], outputs, recorded, compared):
            ordered.append(path)
    return ordered


def _brought_into_order(
    inputs: Mapping[str, str],
    outputs: Iterable[Path],
    recorded: Mapping[str, str],
    compared: Callable[[str], str],
) -> bool:
    """Whether the outputs of a result got the time of its newest input."""
    written = {file: file.stat().st_mtime_ns for file in outputs if file.exists()}
    oldest = min(written.values(), default=0)
    read = {name: Path(name).stat().st_mtime_ns for name in inputs if Path(name).is_file()}
    for name, last in read.items():
        made_again = recorded.get(name, inputs[name]) != inputs[name]
        if made_again and last <= oldest:
            os.utime(name)
            return False
    newer = [name for name in read if read[name] > oldest]
    if not newer or any(compared(name) != inputs[name] for name in newer):
        return False
    newest = max(read[name] for name in newer)
    for file, last in written.items():
        if last < newest:
            os.utime(file, ns=(newest, newest))
    return True


class _Contents:
    """Hashes of files, with a line before the first large ones."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say = say
        self._bytes = 0

    def sha256(self, name: str) -> str:
        self._bytes += Path(name).stat().st_size
        if self._bytes > LARGE:
            self._say(f"Files have other times than when they were made; comparing {name}")
        return sha256(name)
