"""The catalogue of a data set: its files on the hub, pinned, in `<source>.yaml` of the sources."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from importlib import resources

import yaml


@dataclass(frozen=True)
class CatalogueEntry:
    """One file of a data set, as its catalogue pins it on the hub.

    Attributes:
        name: Where it goes, inside the folder of raw files.
        repo: Data set repository of the hub, `owner/name`.
        revision: Commit of that repository.
        file: The file in the repository.
        sha256: Of that file; None where the first fetch records it.
        same: SHA-256 of other files with the same rows.
        columns: The repository's names of `id`, `problem` and `answer`; None keeps the file as is.
        integers: Whether every answer is an integer, written 70 for `070` and 27 for `27.0`.
        rows: How many problems it holds; None where this is not checked.
        answers: `answers_sha256` its answers.
    """

    name: str
    repo: str
    revision: str
    file: str
    sha256: str | None
    same: tuple[str, ...] = ()
    columns: Mapping[str, str] | None = None
    integers: bool = False
    rows: int | None = None
    answers: str | None = None


def load_catalogue(source: str) -> tuple[CatalogueEntry, ...]:
    """The catalogue of a data set, its files in order; none where it has no catalogue."""
    name = f"{source.replace('-', '_')}.yaml"
    path = resources.files("geosd.problems.sources").joinpath(name)
    if not path.is_file():
        return ()
    entries = yaml.safe_load(path.read_text(encoding="utf-8"))
    return tuple(
        CatalogueEntry(**{"name": name, **fields, "same": tuple(fields.get("same", ()))})
        for name, fields in entries.items()
    )


def answers_sha256(answers: Iterable[str]) -> str:
    """The catalogue's hash of a benchmark's answers: SHA-256 of them, sorted, one a line.

    Wordings and order differ between copies of a benchmark, answers do not.
    """
    return hashlib.sha256("\n".join(sorted(answers)).encode()).hexdigest()
