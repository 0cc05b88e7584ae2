"""How far every run had moved at the end of training, read from the step logs.

A row is one quantity of one run: model, variant, seed, quantity, value. The quantities are the step
log's own names: `drift/pi_0` and `drift/anchor` are mean Fisher-Rao distances d_FR (not squared, in
radians, at most pi) over response positions; `overlap` is the mean sum_i sqrt(p_i q_i) between
student p and teacher q; `loss/total` is the objective's. One step visits the states of a handful of
rollouts, so the end of training is the mean over the last `WINDOW` steps that logged the quantity.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import astuple
from pathlib import Path

import pandas as pd

from geosd.scores.score_table import Run
from geosd.scores.tidy import RUN_COLUMNS, by_seed, read_tidy, select

COLUMNS = RUN_COLUMNS | {"quantity": str, "value": float}
QUANTITIES = ("drift/pi_0", "drift/anchor", "overlap", "loss/total")
WINDOW = 8


def collect(logs: Mapping[Run, Path]) -> pd.DataFrame:
    """The tidy table from the step log of each trained run; errors are those of `final_values`.

    A quantity that a method does not log has no row.
    """
    rows = [
        (*astuple(run), quantity, value)
        for run, path in logs.items()
        for quantity, value in final_values(path).items()
    ]
    return pd.DataFrame(rows, columns=list(COLUMNS))


def final_values(path: Path) -> dict[str, float]:
    """The mean of the last `WINDOW` logged values of each quantity in one step log.

    Raises:
        FileNotFoundError: There is no step log.
        ValueError: It has no column `step`, or no row.
    """
    log = read_step_log(path)
    logged = {name: log[name].dropna() for name in QUANTITIES if name in log}
    return {
        name: float(column.iloc[-WINDOW:].mean()) for name, column in logged.items() if len(column)
    }


def read_step_log(path: Path) -> pd.DataFrame:
    """A step log in the order of its steps; errors are those of `final_values`."""
    if not path.exists():
        raise FileNotFoundError(
            f"{path}: the step log is missing.\nHint: let the workflow train the run again."
        )
    try:
        log = pd.read_csv(path)
    except pd.errors.EmptyDataError:
        log = pd.DataFrame()
    if "step" not in log or log.empty:
        raise ValueError(
            f"{path}: not a step log: it needs a column `step` and at least one row, and has"
            f" columns {list(log.columns)} and {len(log)} rows.\nHint: let the workflow train the"
            " run again."
        )
    return log.sort_values("step", kind="stable")


def read(files: Path | str | Sequence[Path]) -> pd.DataFrame:
    """Read a drift table back; see `read_tidy`."""
    return read_tidy(files, COLUMNS, "a drift table")


def values(drift: pd.DataFrame, model: str, variant: str, quantity: str) -> pd.Series:
    """One value per seed of a variant, indexed by seed; empty where the study has none."""
    return by_seed(select(drift, model=model, variant=variant, quantity=quantity))
