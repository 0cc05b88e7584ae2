"""The tidy files that are shipped with a study, for tests that compute from them anew."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pandas as pd

FIGURES = Path(__file__).parents[1] / "figures"


def tidy_path(study: str, name: str) -> Path:
    """The file of a shipped tidy table, `scores` or another; it may be packed."""
    (path,) = (FIGURES / study / "source").glob(f"{name}.csv*")
    return path


def tidy_table(study: str, name: str) -> pd.DataFrame:
    """A shipped tidy table as pandas reads it."""
    return pd.read_csv(tidy_path(study, name))


@cache
def accuracies(study: str) -> pd.Series:
    """avg@k of each run, by variant, seed, draw and benchmark."""
    rows = tidy_table(study, "scores").query("metric == 'avg@k'")
    return rows.set_index(["variant", "seed", "draw", "benchmark"])["value"].sort_index()
