"""Tidy tables: one row a number, columns known by name and type."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import pandas as pd

RUN_COLUMNS: Mapping[str, type] = {"model": str, "variant": str, "seed": int}
"""The columns that name a run."""


def read_tidy(
    files: Path | str | Sequence[Path],
    columns: Mapping[str, type],
    table: str,
    rule: str = "analyse",
) -> pd.DataFrame:
    """A tidy table, with names as text whatever they look like.

    Args:
        files: A CSV file that the workflow wrote, or several, which are read as one.
        columns: Columns that it must have, and their types; an empty number is NaN.
        table: What the table is called in messages, e.g. "a score table".
        rule: The rule that writes it.

    Raises:
        ValueError: A column is missing, or a cell is not of its column's type.
    """
    paths = [files] if isinstance(files, (Path, str)) else files
    return pd.concat([_read(Path(path), columns, table, rule) for path in paths], ignore_index=True)


def select(table: pd.DataFrame, **cells: object) -> pd.DataFrame:
    """The rows whose columns have these values."""
    for column, value in cells.items():
        table = table[table[column] == value]
    return table


def by_seed(rows: pd.DataFrame) -> pd.Series:
    """The column `value` of rows of one variant, one a seed, indexed by seed in ascending order."""
    return rows.set_index("seed")["value"].astype(float).sort_index()


def _read(path: Path, columns: Mapping[str, type], table: str, rule: str) -> pd.DataFrame:
    hint = f"Hint: remove the file and let the workflow run `{rule}` again."
    numbers = {name: [""] for name, kind in columns.items() if kind is float}
    try:
        # pandas would take some names for numbers, and the name "nan" for nothing.
        rows = pd.read_csv(path, dtype=dict(columns), keep_default_na=False, na_values=numbers)
    except ValueError as error:
        raise ValueError(f"{path}: {table} cannot be read: {error}.\n{hint}") from error
    if missing := [name for name in columns if name not in rows]:
        needed = f"{table} has {', '.join(columns)}"
        raise ValueError(f"{path}: missing column {', '.join(missing)}; {needed}.\n{hint}")
    return rows
