"""Tidy files: their columns, reading them, and picking rows out of them.

A row is a number. Columns are known by name and type; docs/reference.md says what each means.
"""

from __future__ import annotations

import gzip
import math
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import astuple
from pathlib import Path
from typing import TYPE_CHECKING, Any

from geosd.files import DamagedFileError, remake_file_hint

if TYPE_CHECKING:  # the workflow reads the columns at each start, which must not load pandas
    import pandas as pd

RUN_COLUMNS: Mapping[str, type] = {"model": str, "variant": str, "seed": int, "draw": int}
"""The columns that every row of a run begins with."""
DIVERGENCES = ("fwdkl", "revkl", "hellinger")
"""Divergences with a column `gradient_<divergence>` in the table of states."""


def _columns(*groups: tuple[type, str]) -> dict[str, type]:
    return {name: kind for kind, names in groups for name in names.split()}


COLUMNS: Mapping[str, Mapping[str, type]] = {
    "scores": RUN_COLUMNS | _columns((str, "benchmark split metric"), (int, "k"), (float, "value")),
    "shares": RUN_COLUMNS
    | _columns((str, "benchmark problem_id"), (int, "samples"), (float, "share")),
    "habits": RUN_COLUMNS | _columns((str, "benchmark quantity"), (float, "value")),
    "drift": RUN_COLUMNS | _columns((str, "quantity"), (float, "value")),
    "drift_over_steps": RUN_COLUMNS | _columns((int, "step"), (float, "value")),
    "training_curves": RUN_COLUMNS | _columns((int, "step"), (str, "quantity"), (float, "value")),
    "consensus": RUN_COLUMNS
    | _columns((str, "quantity"), (float, "x"), (int, "problems"), (float, "value")),
    "alignment": RUN_COLUMNS
    | _columns((int, "step"), (str, "ranking"), (int, "rank"), (float, "mass"), (int, "positions")),
    "states": _columns(
        (str, "model problem_id"),
        (int, "rollout position token"),
        (float, "entropy"),
        (bool, "selected"),
        (float, "overlap"),
        (int, "top_token"),
        (float, "q_star p_star"),
        (float, " ".join(f"gradient_{name}" for name in DIVERGENCES)),
    ),
    # Numbers are read as text, since float() is exact where pandas may round the last digit.
    "claims": _columns(
        (str, "claim study model part word comparison metric note"),
        (str, "effect low high confidence claimed_from claimed_to paper_effect holds_paper"),
        (int, "n_a n_b units"),
    ),
}
"""File name without `.csv` -> column -> type, in the order of the columns."""

NUMBERS: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(("scores", "habits", "drift", "drift_over_steps"), ("value",)),
    "training_curves": ("value",),
    "shares": ("samples", "share"),
    "consensus": ("problems", "value"),
    "alignment": ("mass", "positions"),
}
"""Columns that a row is about; its other columns name it, and no two rows have the same name."""
WORDS: Mapping[str, tuple[str, ...]] = {
    "split": ("ID", "OOD", "fresh", "train"),
    "ranking": ("pi_0", "live"),
}
"""Columns in which only these words stand."""
UNITS: Mapping[str, tuple[float, float]] = {
    **dict.fromkeys(("avg@k", "pass@k", "maj@k", "with_solution"), (0, 100)),
    **dict.fromkeys(("truncated", "no_answer", "unreadable", "timeout", "crash"), (0, 100)),
    **dict.fromkeys(("false_consensus", "majority_accuracy"), (0, 100)),
    **dict.fromkeys(("first_low", "first_high", "repeats", "checks", "retries"), (0, 100)),
    "tokens": (0, math.inf),
    **dict.fromkeys(("drift/pi_0", "drift/anchor"), (0, math.pi)),
    **dict.fromkeys(("overlap", "rollout/accuracy", "mass", "q_star", "p_star", "share"), (0, 1)),
    **dict.fromkeys(("support/teacher_mass_mean", "support/teacher_mass_min"), (0, 1)),
}
"""Least and most of a number, by its column, or by what `metric` or `quantity` say `value` is."""
COUNTED = (0, math.inf)
UNBOUNDED = (-math.inf, math.inf)
NEVER_EMPTY = ("scores", "shares", "alignment", "states", "claims")
ROUNDING = 1e-4
"""How far a share or a distance may lie beyond its bounds, relative to the upper one."""


def read_tidy(name: str, files: Path | str | Sequence[Path]) -> pd.DataFrame:
    """Read a tidy CSV file of `COLUMNS`, or several as one, with names as text.

    Raises:
        DamagedFileError: A column or a cell is missing, a cell is not of its column's type or out
            of bounds, a row stands twice, or a run lacks a row that others of its model have.
    """
    import pandas as pd

    paths = [files] if isinstance(files, (Path, str)) else files
    return pd.concat([_read(name, Path(path)) for path in paths], ignore_index=True)


def read_tidy_files(files: Iterable[Path]) -> dict[str, pd.DataFrame]:
    """The tidy tables of files, each known by its own name; those of one name are one table."""
    by_name: dict[str, list[Path]] = {}
    for path in files:
        by_name.setdefault(path.stem, []).append(path)
    return {name: read_tidy(name, paths) for name, paths in by_name.items()}


def _read(name: str, path: Path) -> pd.DataFrame:
    columns = COLUMNS[name]
    table = read_tidy_cells(path, columns, f"the table of {name}")
    if table.empty and name in NEVER_EMPTY:
        raise DamagedFileError(f"{path}: the table of {name} has no row.\n{remake_file_hint(path)}")
    _check_columns(path, table, columns)
    if name in NUMBERS:
        keys = [column for column in columns if column not in NUMBERS[name]]
        twice = table.duplicated(keys)
        if twice.any():
            row = int(twice.argmax())
            cells = list(table.iloc[row][keys])
            raise _damaged_cell(path, row, ", ".join(keys), cells, "each row once")
        _check_runs(path, table, keys)
    return table


def read_tidy_cells(
    path: Path, columns: Mapping[str, type], content: str, filled: Iterable[str] | None = None
) -> pd.DataFrame:
    """Read columns of a CSV file; every cell must be of the type of its column.

    Other columns are read as pandas takes them. No cell of the `filled` columns is empty; None
    means all. Errors call the file `content`.

    Raises:
        DamagedFileError: Names the file, and the line and the column where there is one.
    """
    import pandas as pd

    hint = remake_file_hint(path)
    numbers = {column: [""] for column, kind in columns.items() if kind is float}
    try:
        # pandas would take some names for numbers, and the name "nan" for nothing.
        table = pd.read_csv(path, dtype=dict(columns), keep_default_na=False, na_values=numbers)
    except ValueError as error:
        wrong = _first_wrong_cell(path, columns)
        if wrong:
            raise _damaged_cell(path, *wrong) from error
        raise DamagedFileError(f"{path}: {content} cannot be read: {error}.\n{hint}") from error
    missing = [column for column in columns if column not in table]
    if missing:
        needed = f"{content} has {', '.join(columns)}"
        raise DamagedFileError(f"{path}: missing column {', '.join(missing)}; {needed}.\n{hint}")
    if not isinstance(table.index, pd.RangeIndex):
        raise DamagedFileError(f"{path}: lines have more cells than columns.\n{hint}")
    absent = table[list(columns if filled is None else filled)].isna()
    lines = absent.any(axis=1)
    if lines.any():
        row = int(lines.argmax())
        raise _damaged_cell(path, row, absent.loc[row].idxmax(), "nothing", "a value")
    opened = gzip.open if path.suffix == ".gz" else open
    with opened(path, "rb") as file:
        file.seek(-1, os.SEEK_END)
        if file.read() != b"\n":
            raise DamagedFileError(f"{path}:{len(table) + 1}: the line has no end.\n{hint}")
    return table


def _damaged_cell(
    path: Path, row: int, column: str, got: object, expected: str
) -> DamagedFileError:
    """The error that a cell of a CSV file is wrong; rows count from 0, below the header."""
    return DamagedFileError(
        f"{path}:{row + 2}: {column} is {got}; expected {expected}.\n{remake_file_hint(path)}"
    )


def _first_wrong_cell(
    path: Path, columns: Mapping[str, type]
) -> tuple[int, str, object, str] | None:
    """Row, column, cell and type of the first number that is none; None where all are."""
    import pandas as pd

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
            wrong = numbers.isna()
            if kind is int:
                wrong |= numbers % 1 != 0
            if wrong.any():
                found.append((int(wrong.argmax()), column))
    if not found:
        return None
    row, column = min(found)
    expected = "a whole number" if columns[column] is int else "a number"
    return row, column, repr(table[column].iloc[row]), expected


def _check_columns(path: Path, table: pd.DataFrame, columns: Mapping[str, type]) -> None:
    """Check the words of every column of words, and the bounds of every column of numbers."""
    kinds = next((table[key] for key in ("metric", "quantity") if key in columns), None)
    for column, kind in columns.items():
        cells = table[column]
        if column in WORDS:
            known = cells.isin(WORDS[column])
            if not known.all():
                row = int(known.argmin())
                raise _damaged_cell(path, row, column, repr(cells[row]), f"one of {WORDS[column]}")
        if kind not in (int, float):
            continue
        if column == "value" and kinds is not None:
            of_rows = kinds.map(lambda name: UNITS.get(name, UNBOUNDED))
            least = of_rows.str[0].to_numpy(dtype=float)
            most = of_rows.str[1].to_numpy(dtype=float)
        elif column == "value":
            least, most = UNITS["drift/pi_0"]  # drift_over_steps
        else:
            least, most = UNITS.get(column, COUNTED if kind is int else UNBOUNDED)
        check_tidy_bounds(path, column, cells, least, most)


def check_tidy_bounds(
    path: Path, column: str, cells: pd.Series, least: Any, most: Any, empty: bool = False
) -> None:
    """Check that the numbers of a column are finite and between two bounds, but for rounding.

    With `empty`, a number may be missing.

    Raises:
        DamagedFileError: Names the file, and the first line with another one.
    """
    import numpy as np

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
        low = np.broadcast_to(least, values.shape)[row]
        high = np.broadcast_to(most, values.shape)[row]
        raise _damaged_cell(
            path, row, column, cells.iloc[row], f"a number from {low:g} to {high:g}"
        )


def _check_runs(path: Path, table: pd.DataFrame, keys: Sequence[str]) -> None:
    """Check that all variants of a model have the same seeds, and all its runs the same scores."""
    seeds = table.groupby(["model", "variant"])["seed"].agg(lambda of_variant: set(of_variant))
    for (model, variant), of_variant in seeds.items():
        missing = sorted(set().union(*seeds[model]) - of_variant)
        if missing:
            raise DamagedFileError(
                f"{path}: {variant} on {model} has no row of seed {', '.join(map(str, missing))};"
                f" expected rows of each seed that other variants have.\n{remake_file_hint(path)}"
            )
    if not {"metric", "problem_id"} & {*keys}:
        return
    numbers = table.groupby(["model", "variant", "seed"]).size()
    for (model, variant, seed), count in numbers.items():
        most = numbers[model].max()
        if count != most:
            raise DamagedFileError(
                f"{path}: {variant} on {model}, seed {seed}, has {count} rows; expected {most},"
                f" as other runs have.\n{remake_file_hint(path)}"
            )


def select_tidy_rows(table: pd.DataFrame, **cells: object) -> pd.DataFrame:
    """The rows of a tidy table whose columns have the given values."""
    import numpy as np

    matches = [(table[column] == value).to_numpy() for column, value in cells.items()]
    return table[np.logical_and.reduce(matches)]


def tidy_rows_of_runs(name: str, rows: Mapping[Any, Iterable[tuple]]) -> pd.DataFrame:
    """The tidy table of a name from the rows of each `Run`, which lack the columns of the run."""
    import pandas as pd

    whole = [(*astuple(run), *row) for run, of_run in rows.items() for row in of_run]
    return pd.DataFrame(whole, columns=list(COLUMNS[name]))


def tidy_values_by_seed(rows: pd.DataFrame) -> pd.Series:
    """The column `value` of tidy rows, one a seed, indexed by seed in ascending order."""
    return rows.set_index("seed")["value"].astype(float).sort_index()
