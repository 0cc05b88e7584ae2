"""Step logs of every run, as tidy tables: drift at the end and by step, and curves."""

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pandas as pd

from geosd.files import DamagedFileError, remake_file_hint
from geosd.scores.score_table import ScoredRun
from geosd.scores.tidy import (
    COLUMNS,
    RUN_COLUMNS,
    UNITS,
    check_tidy_bounds,
    read_tidy_cells,
    select_tidy_rows,
    tidy_rows_of_runs,
    tidy_values_by_seed,
)

DRIFT = "drift/pi_0"
"""The step log's mean Fisher-Rao distance d_FR from pi_0, in radians."""
TEACHER_MASS = ("support/teacher_mass_mean", "support/teacher_mass_min")
"""The step log's mean and minimum of the teacher's mass on the union of top-K supports."""
QUANTITIES = (DRIFT, "drift/anchor", "overlap", *TEACHER_MASS)
LOSS = "loss/total"
"""Values that every step logs, and the measurement after the last step does not."""


def collect_step_log_drift(logs: Mapping[ScoredRun, Path]) -> pd.DataFrame:
    """The table of drift at the end of training, from the step log of each run.

    A quantity that was not measured has no row. Errors are those of `step_log_end_values`.
    """
    return tidy_rows_of_runs("drift", {run: step_log_end_values(logs[run]).items() for run in logs})


def collect_step_log_drifts(logs: Mapping[ScoredRun, Path]) -> pd.DataFrame:
    """The table of drift at every step that measured it, from the step log of each run.

    Errors are those of `step_log_end_values`.
    """
    tables = [pd.DataFrame(columns=list(COLUMNS["drift_over_steps"]))] if not logs else []
    for run, path in logs.items():
        log = _read_step_log(path)
        if DRIFT not in log:
            raise DamagedFileError(f"{path}: missing column {DRIFT}.\n{remake_file_hint(path)}")
        _check_end(path, log.iloc[-1])
        table = log.rename(columns={DRIFT: "value"})[["step", "value"]].dropna()
        tables.append(table.assign(**asdict(run)))
    return pd.concat(tables, ignore_index=True)[list(COLUMNS["drift_over_steps"])]


def step_log_end_values(path: Path) -> dict[str, float]:
    """`QUANTITIES` at the end of training: the last row of the step log, measured after all steps.

    Raises:
        FileNotFoundError: There is no step log.
        DamagedFileError: It has no column `step`, or no row, or does not end with that measurement;
            a step is missing, or a number is none or out of bounds.
    """
    last = _read_step_log(path).iloc[-1]
    _check_end(path, last)
    return {name: float(last[name]) for name in QUANTITIES if pd.notna(last.get(name))}


def _read_step_log(path: Path) -> pd.DataFrame:
    """A run's step log in the order of its steps; errors are those of `step_log_end_values`."""
    if not path.exists():
        raise FileNotFoundError(
            f"{path}: the step log is missing.\nHint: let the workflow train the run again."
        )
    try:
        names = list(pd.read_csv(path, nrows=0).columns)
    except ValueError:  # an empty file, or none of text
        names = []
    log = pd.DataFrame(columns=names)
    if "step" in names:
        columns = {**dict.fromkeys(names, float), "step": int}
        log = read_tidy_cells(path, columns, "the step log", filled=["step"])
    if log.empty:
        raise DamagedFileError(
            f"{path}: not a step log: it needs a column `step` and at least one row, and has"
            f" columns {names} and no row.\n{remake_file_hint(path)}"
        )
    for name in [name for name in QUANTITIES if name in log]:
        check_tidy_bounds(path, name, log[name], *UNITS[name], empty=True)
    expected = np.arange(len(log))
    if not (found := np.sort(log["step"].to_numpy()) == expected).all():
        step = int(np.argmin(found))
        raise DamagedFileError(
            f"{path}: step {step} is missing, or another stands twice; expected each from 0 to"
            f" {len(log) - 1} once.\n{remake_file_hint(path)}"
        )
    return log.sort_values("step", kind="stable")


def _check_end(path: Path, last: pd.Series) -> None:
    if pd.isna(last.get(DRIFT)) or pd.notna(last.get(LOSS)):
        raise DamagedFileError(
            f"{path}: row {last['step']:.0f} is not the measurement after the last step, which has"
            f" {DRIFT} and no {LOSS}.\n{remake_file_hint(path)}"
        )


def step_log_final_drift(drift: pd.DataFrame, model: str, variant: str) -> pd.Series:
    """Distance d_FR of a variant from pi_0 at the end of training, in radians, indexed by seed.

    Empty where the study has none.
    """
    return tidy_values_by_seed(
        select_tidy_rows(drift, model=model, variant=variant, quantity=DRIFT)
    )


CURVES = ("rollout/accuracy", DRIFT, "overlap")
"""Columns of the step log that mean the same for every method; losses do not."""


def collect_training_curves(logs: Mapping[ScoredRun, Path]) -> pd.DataFrame:
    """The table of training curves, from the step log of each run.

    A row for each quantity and each step that measured the drift. What is logged at every step is
    its mean over the steps from there to the next measurement. A quantity that was not measured
    has no row. Errors are those of `_read_step_log`.
    """
    tables = [pd.DataFrame(columns=list(COLUMNS["training_curves"]))] if not logs else []
    for run, path in logs.items():
        log = _read_step_log(path).reindex(columns=["step", *CURVES])
        means = log.groupby(log[DRIFT].notna().cumsum()).agg(
            {"step": "min", **dict.fromkeys(CURVES, "mean")}
        )
        tables.append(means.melt("step", var_name="quantity").dropna().assign(**asdict(run)))
    table = pd.concat(tables, ignore_index=True)[list(COLUMNS["training_curves"])]
    return table.sort_values([*RUN_COLUMNS, "quantity", "step"], kind="stable", ignore_index=True)
