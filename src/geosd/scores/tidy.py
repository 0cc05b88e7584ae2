"""Reading tidy tables back: one row a number, columns known by name."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pandas as pd


def read_tidy(
    files: Path | str | Sequence[Path], columns: Sequence[str], what: str, rule: str = "analyse"
) -> pd.DataFrame:
    """A tidy table, with models and variants as names whatever they look like.

    Args:
        files: A CSV file that the workflow wrote, or several, which are read as one.
        columns: Columns that it must have.
        what: What the table is called in the message, e.g. "a score table".
        rule: The rule that writes it.

    Raises:
        ValueError: A column is missing.
    """
    paths = [files] if isinstance(files, (Path, str)) else files
    tables = []
    for path in paths:
        # pandas would take some names for numbers, and the name "nan" for nothing.
        table = pd.read_csv(path, dtype={"model": str, "variant": str}, keep_default_na=False)
        if missing := [name for name in columns if name not in table]:
            raise ValueError(
                f"{path}: missing column {', '.join(missing)}; {what} has {', '.join(columns)}."
                f"\nHint: remove the file and let the workflow run `{rule}` again."
            )
        tables.append(table)
    return pd.concat(tables, ignore_index=True)
