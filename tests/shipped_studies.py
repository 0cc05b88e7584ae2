"""The tidy files that are shipped with a study, for tests that compute from them anew.

Nothing here is of geosd, so that what is shipped and what is computed anew can disagree.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
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


@cache
def drifts(study: str) -> pd.Series:
    """The mean d_FR to π₀ of each run in radians, by variant, seed and draw."""
    rows = tidy_table(study, "drift").query("quantity == 'drift/pi_0'")
    return rows.set_index(["variant", "seed", "draw"])["value"].sort_index()


def value_at(moved, values, level: float) -> float:
    """`values` where `moved` first comes to a level, linear between points; NaN if it never does.

    Both begin at π₀, where `moved` is 0, and the level is above 0.
    """
    for i in range(1, len(moved)):
        if moved[i] >= level:
            return float(np.interp(level, moved[i - 1 : i + 1], values[i - 1 : i + 1]))
    return np.nan


def page_number(value: float, form: str = "+.1f") -> str:
    """A number as the pages write it: with a minus sign, and a zero without one."""
    text = format(value, form)
    if not float(text):
        text = text.lstrip("+-")
    return text.replace("-", "−")
