"""Reading tidy files (`geosd.scores.tidy_columns`), and picking rows out of them."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from geosd.files import DamagedFileError, remake_hint
from geosd.scores.tidy_columns import COLUMNS, NUMBERS, UNITS, WORDS

NEVER_EMPTY = ("scores", "alignment", "states", "claims")
ROUNDING = 1e-4
"""How far a share or a distance may lie beyond its bounds, relative to the upper one."""


def read_tidy(name: str, files: Path | str | Sequence[Path]) -> pd.DataFrame:
    """Read a tidy CSV file, or several as one, with names as text whatever they look like.

    Args:
        name: What `geosd.scores.tidy_columns` calls the file, e.g. "scores".
        files: One or several, as the workflow wrote them.

    Raises:
        DamagedFileError: A column or a cell is missing, a cell is not of its column's type or out
            of bounds, a row stands twice, or a run lacks a row that others of its model have.
    """
    paths = [files] if isinstance(files, (Path, str)) else files
    return pd.concat([_read(name, Path(path)) for path in paths], ignore_index=True)


def _read(name: str, path: Path) -> pd.DataFrame:
    columns = COLUMNS[name]
    table = read_cells(path, columns, f"the table of {name}")
    if table.empty and name in NEVER_EMPTY:
        raise DamagedFileError(f"{path}: the table of {name} has no row.\n{remake_hint(path)}")
    _check_bounds(path, table, columns)
    if name in NUMBERS:
        keys = [column for column in columns if column not in NUMBERS[name]]
        if len(twice := np.flatnonzero(table.duplicated(keys))):
            row = table.iloc[twice[0]]
            raise damaged_cell(path, twice[0], ", ".join(keys), list(row[keys]), "each row once")
        _check_runs(path, table, keys)
    return table


def read_cells(
    path: Path, columns: Mapping[str, type], content: str, filled: Iterable[str] | None = None
) -> pd.DataFrame:
    """Read columns of a CSV file; every cell must be of the type of its column.

    Args:
        path: The file.
        columns: Their types; other columns are read as pandas takes them.
        content: What the file is, for errors.
        filled: Columns without an empty cell; None: all.

    Raises:
        DamagedFileError: Names the file, and the line and the column where there is one.
    """
    hint = remake_hint(path)
    numbers = {column: [""] for column, kind in columns.items() if kind is float}
    options = {"keep_default_na": False, "na_values": numbers}
    try:
        # pandas would take some names for numbers, and the name "nan" for nothing.
        table = pd.read_csv(path, dtype=dict(columns), **options)
    except ValueError as error:
        found = _first_wrong_cell(path, columns)
        if found is not None:
            raise damaged_cell(path, *found) from error
        raise DamagedFileError(f"{path}: {content} cannot be read: {error}.\n{hint}") from error
    if missing := [column for column in columns if column not in table]:
        needed = f"{content} has {', '.join(columns)}"
        raise DamagedFileError(f"{path}: missing column {', '.join(missing)}; {needed}.\n{hint}")
    if not isinstance(table.index, pd.RangeIndex):
        raise DamagedFileError(f"{path}: lines have more cells than columns.\n{hint}")
    names = list(columns if filled is None else filled)
    absent = table[names].isna()
    if absent.any(axis=None):
        row, column = np.argwhere(absent.to_numpy())[0]
        raise damaged_cell(path, row, names[column], "nothing", "a value")
    with path.open("rb") as file:
        file.seek(-1, os.SEEK_END)
        if file.read() != b"\n":
            raise DamagedFileError(f"{path}:{len(table) + 1}: the line has no end.\n{hint}")
    return table


def damaged_cell(path: Path, row: int, column: str, got: object, expected: str) -> DamagedFileError:
    """The error that a cell of a CSV file is wrong; rows count from 0, below the header."""
    return DamagedFileError(
        f"{path}:{row + 2}: {column} is {got}; expected {expected}.\n{remake_hint(path)}"
    )


def _first_wrong_cell(
    path: Path, columns: Mapping[str, type]
) -> tuple[int, str, object, str] | None:
    """Row, column, cell and type of the first number that is none; None where all are."""
    try:
        table = pd.read_csv(path, dtype=str, keep_default_na=False)
    except ValueError:
        return None
    if not isinstance(table.index, pd.RangeIndex):
        return 0, "the number of cells", "larger than that of columns", f"{table.shape[1]} cells"
    found = []
    for column, kind in columns.items():
        if kind in (int, float) and column in table:
            numbers = pd.to_numeric(table[column], errors="coerce")
            wrong = numbers.isna() if kind is float else numbers.isna() | (numbers % 1 != 0)
            found += [(row, column) for row in np.flatnonzero(wrong)[:1]]
    if not found:
        return None
    row, column = min(found)
    expected = "a whole number" if columns[column] is int else "a number"
    return row, column, repr(table[column].iloc[row]), expected


def _check_bounds(path: Path, table: pd.DataFrame, columns: Mapping[str, type]) -> None:
    kinds = next((table[key] for key in ("metric", "quantity") if key in columns), None)
    for column, kind in columns.items():
        cells = table[column]
        if column in WORDS and not (known := cells.isin(WORDS[column])).all():
            row = int(np.argmin(known))
            raise damaged_cell(path, row, column, repr(cells[row]), f"one of {WORDS[column]}")
        if kind not in (int, float):
            continue
        least, most = UNITS.get(column, (0 if kind is int else -math.inf, math.inf))
        if column == "value" and kinds is not None:
            each = kinds.map(lambda name: UNITS.get(name, (-math.inf, math.inf)))
            least, most = (each.str[side].to_numpy(dtype=float) for side in (0, 1))
        elif column == "value":
            least, most = UNITS["drift/pi_0"]  # drift_over_steps
        check_numbers(path, column, cells, least, most)


def check_numbers(
    path: Path, column: str, cells: pd.Series, least: Any, most: Any, empty: bool = False
) -> None:
    """Check that the numbers of a column are finite and between two bounds, but for rounding.

    With `empty`, a number may be missing.

    Raises:
        DamagedFileError: Names the file, and the first line with another one.
    """
    values = cells.to_numpy(dtype=float)
    if len(values) and np.ndim(most) == 0:  # one pass over a long column; NaN is not between
        low, high = values.min(), values.max()
        if np.isfinite([low, high]).all() and least <= low and high <= most:
            return
    slack = ROUNDING * np.where(np.isfinite(most), most, 0)
    good = np.isfinite(values) & (values >= least - slack) & (values <= most + slack)
    good |= np.isnan(values) & empty
    if not good.all():
        row = int(np.argmin(good))
        low, high = (np.broadcast_to(bound, values.shape)[row] for bound in (least, most))
        raise damaged_cell(path, row, column, cells.iloc[row], f"a number from {low:g} to {high:g}")


def _check_runs(path: Path, table: pd.DataFrame, keys: Sequence[str]) -> None:
    """Check that all variants of a model have the same seeds, and all its runs the same scores."""
    if "draw" not in table:
        return
    seeds = table.groupby(["model", "variant"])["seed"].agg(lambda of_variant: set(of_variant))
    for (model, variant), of_variant in seeds.items():
        everyone = set().union(*seeds[model])
        if of_variant != everyone:
            missing = ", ".join(map(str, sorted(everyone - of_variant)))
            raise DamagedFileError(
                f"{path}: {variant} on {model} has no row of seed {missing}; expected rows of each"
                f" seed that other variants have.\n{remake_hint(path)}"
            )
    if "metric" not in keys:
        return
    of_run = ["model", "variant", "seed"]
    numbers = table.groupby(of_run).size()
    for run, count in numbers.items():
        if count != (most := numbers[run[0]].max()):
            raise DamagedFileError(
                f"{path}: {run[1]} on {run[0]}, seed {run[2]}, has {count} rows; expected {most},"
                f" as other runs have.\n{remake_hint(path)}"
            )


def select_rows(table: pd.DataFrame, **cells: object) -> pd.DataFrame:
    """The rows of a tidy table whose columns have the given values."""
    matches = [(table[column] == value).to_numpy() for column, value in cells.items()]
    return table[np.logical_and.reduce(matches)]


def values_by_seed(rows: pd.DataFrame) -> pd.Series:
    """The column `value` of tidy rows, one a seed, indexed by seed in ascending order."""
    return rows.set_index("seed")["value"].astype(float).sort_index()


def draws_by_seed(rows: pd.DataFrame) -> pd.Series:
    """The draw of the base model that each seed of one model's tidy rows starts from, by seed.

    Rows without the column `draw` are of one draw, 0.
    """
    draws = rows["draw"] if "draw" in rows else pd.Series(0, rows.index)
    return pd.Series(draws.to_numpy(), rows["seed"], dtype=int).groupby(level=0).first()
