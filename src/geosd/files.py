"""Files that are either whole or absent, and JSON lines that say where they are damaged."""

from __future__ import annotations

import dataclasses
import json
import os
import shutil
import types
import typing
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

Row = TypeVar("Row")


class DamagedLineError(ValueError):
    """A line of a JSON-lines file that does not hold the record it should."""


@contextmanager
def atomic_write(path: Path | str) -> Iterator[Path]:
    """Write a file under a temporary name, and give it its own only when it is whole.

    Args:
        path: The final name. Its folder is made where it is missing.

    Yields:
        The temporary name, in the same folder, so that the renaming cannot be half done.
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        yield temporary
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


def copy(source: Path | str, path: Path | str) -> None:
    """Copy a file to `path`, whole or not at all."""
    with atomic_write(path) as temporary:
        shutil.copyfile(source, temporary)


def write_text(path: Path | str, text: str) -> None:
    """Write `text` to `path`, whole or not at all."""
    with atomic_write(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def write_json(path: Path | str, value: Any) -> None:
    """Write `value` as indented JSON with sorted keys, whole or not at all."""
    write_text(path, json.dumps(value, indent=2, sort_keys=True, ensure_ascii=False) + "\n")


def write_jsonl(path: Path | str, rows: Iterable[Any]) -> None:
    """Write dataclass rows as JSON lines, whole or not at all."""
    with atomic_write(path) as temporary, temporary.open("w", encoding="utf-8") as out:
        for row in rows:
            out.write(json.dumps(dataclasses.asdict(row), ensure_ascii=False) + "\n")


def read_jsonl(path: Path | str, cls: type[Row]) -> list[Row]:
    """Read JSON lines into rows of a dataclass.

    Args:
        path: The file; every line one JSON object with exactly the fields of `cls`.
        cls: A dataclass whose fields are str, int, float, bool, tuples of these, or optional. A
            field with a default may be missing: files from before it was kept stay readable.

    Returns:
        The rows, in the file's order.

    Raises:
        DamagedLineError: A line is not JSON, or its fields are not those of `cls`; the error names
            file and line.
    """
    path = Path(path)
    hints = typing.get_type_hints(cls)
    rows = []
    with path.open(encoding="utf-8", errors="replace") as lines:
        for number, line in enumerate(lines, start=1):
            try:
                rows.append(_row(json.loads(line), cls, hints))
            except (ValueError, TypeError) as error:
                raise DamagedLineError(
                    f"{path}:{number}: not a {cls.__name__}: {error}. Expected one JSON object with"
                    f" the fields {', '.join(hints)}.\nHint: remove {path} and run the workflow"
                    " again; the rule that writes it will make it anew."
                ) from error
    return rows


def _row(values: Any, cls: type[Row], hints: dict[str, Any]) -> Row:
    if not isinstance(values, dict):
        raise ValueError(f"a JSON {type(values).__name__} instead of an object")
    kept = {f.name for f in dataclasses.fields(cls) if f.default is not dataclasses.MISSING}
    if missing := sorted(hints.keys() - values.keys() - kept):
        raise ValueError(f"missing {', '.join(missing)}")
    if unknown := sorted(values.keys() - hints.keys()):
        raise ValueError(f"unknown {', '.join(unknown)}")
    return cls(**{name: _checked(name, value, hints[name]) for name, value in values.items()})


def _checked(name: str, value: Any, hint: Any) -> Any:
    """The value as the type that the field declares; JSON lists become tuples."""
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin in (types.UnionType, typing.Union):
        if value is None and type(None) in arguments:
            return None
        return _checked(name, value, next(a for a in arguments if a is not type(None)))
    if origin is tuple:
        if not isinstance(value, list):
            raise ValueError(f"{name} is {value!r}, not a list")
        return tuple(_checked(name, item, arguments[0]) for item in value)
    if origin is typing.Literal:
        if value not in arguments:
            raise ValueError(f"{name} is {value!r}, not one of {', '.join(map(repr, arguments))}")
        return value
    # bool is an int to Python; a count written as `true` is damage, not a number.
    allowed = (int, float) if hint is float else (hint,)
    if not isinstance(value, allowed) or (isinstance(value, bool) and hint is not bool):
        raise ValueError(f"{name} is {value!r}, not {hint.__name__}")
    return value
