"""JSON-lines files of dataclass rows, whole or absent, that say where they are damaged."""

from __future__ import annotations

import codecs
import dataclasses
import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from geosd.files import DamagedFileError, atomic_write, remake_file_hint

if TYPE_CHECKING:
    from pydantic import ValidationError

Row = TypeVar("Row")


class DamagedLineError(DamagedFileError):
    """A line of a JSON-lines file that does not hold the record that it should."""


def write_jsonl(path: Path | str, rows: Iterable[Any]) -> None:
    """Write a JSON-lines file of dataclass rows, whole or not at all."""
    with atomic_write(path) as temporary, temporary.open("w", encoding="utf-8") as out:
        for row in rows:
            out.write(json.dumps(dataclasses.asdict(row), ensure_ascii=False) + "\n")


def numbered_lines(path: Path | str) -> Iterator[tuple[int, bytes]]:
    """The lines of a JSON-lines file of anyone's, with their numbers, which begin at 1.

    Blank lines are passed over, and a byte-order mark goes wherever a line begins with it: files
    that editors wrote are joined. Lines end as bytes do: JSON leaves U+2028 inside strings.
    """
    number = 0
    with Path(path).open("rb") as blocks:
        for block in blocks:
            for line in block.splitlines():
                number += 1
                text = line.removeprefix(codecs.BOM_UTF8)
                if text.strip():
                    yield number, text


def read_jsonl(path: Path | str, cls: type[Row]) -> list[Row]:
    """Read a JSON-lines file into rows of a dataclass.

    Every line is one JSON object with exactly the fields of `cls`; one with a default may be
    missing: files from before it was kept stay readable. Values are checked strictly: a bool or a
    text is no number, a JSON list becomes a tuple.

    Raises:
        DamagedLineError: A line is not JSON, or its fields are not those of `cls`; the error names
            file and line.
    """
    # A tenth of a second that programs without records save.
    from pydantic import TypeAdapter, ValidationError

    validate = TypeAdapter(cls).validate_json
    rows = []
    with Path(path).open("rb") as lines:
        for number, line in enumerate(lines, start=1):
            try:
                rows.append(validate(line, strict=True, extra="forbid"))
            except ValidationError as error:
                fields = ", ".join(field.name for field in dataclasses.fields(cls))
                raise DamagedLineError(
                    f"{path}:{number}: not a {cls.__name__}: {_mistakes(error)}. Expected one JSON"
                    f" object with the fields {fields}.\n{remake_file_hint(path)}"
                ) from error
    return rows


def _mistakes(error: ValidationError) -> str:
    """Pydantic's findings, one clause a field."""
    clauses = []
    for mistake in error.errors(include_url=False):
        field = ".".join(map(str, mistake["loc"]))
        if mistake["type"] == "missing":
            clauses.append(f"missing {field}")
        elif mistake["type"] == "unexpected_keyword_argument":
            clauses.append(f"unknown {field}")
        elif field:
            clauses.append(f"{field} is {mistake['input']!r}: {mistake['msg']}")
        else:
            clauses.append(mistake["msg"])
    return "; ".join(clauses)
