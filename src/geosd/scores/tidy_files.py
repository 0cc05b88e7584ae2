"""Reading tidy files (`geosd.scores.tidy_columns`), and picking rows out of them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from geosd.scores.tidy_columns import COLUMNS


def read_tidy(name: str, files: Path | str | Sequence[Path]) -> pd.DataFrame:
    """Read a tidy CSV file, or several as one, with names as text whatever they look like.

    Args:
        name: What `geosd.scores.tidy_columns` calls the file, e.g. "scores".
        files: One or several, as the workflow wrote them; an empty number is NaN.

    Raises:
        ValueError: A column is missing, or a cell is not of its column's type.
    """
    paths = [files] if isinstance(files, (Path, str)) else files
    return pd.concat([_read(name, Path(path)) for path in paths], ignore_index=True)


def _read(name: str, path: Path) -> pd.DataFrame:
    columns, in_analyse = COLUMNS[name], name in ("scores", "drift", "consensus")
    rule = "analyse" if in_analyse else name
    hint = f"Hint: remove the file and let the workflow run `{rule}` again."
    numbers = {column: [""] for column, kind in columns.items() if kind is float}
    try:
        # pandas would take some names for numbers, and the name "nan" for nothing.
        rows = pd.read_csv(path, dtype=dict(columns), keep_default_na=False, na_values=numbers)
    except ValueError as error:
        raise ValueError(f"{path}: the table of {name} cannot be read: {error}.\n{hint}") from error
    if missing := [column for column in columns if column not in rows]:
        needed = f"the table of {name} has {', '.join(columns)}"
        raise ValueError(f"{path}: missing column {', '.join(missing)}; {needed}.\n{hint}")
    return rows


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
