"""How every run trained: a few quantities of its step log over its steps, as one tidy table."""

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path

import pandas as pd

from geosd.scores.drift_tables import DRIFT, read_step_log
from geosd.scores.score_table import Run
from geosd.scores.tidy import COLUMNS, RUN_COLUMNS

CURVES = ("rollout/accuracy", DRIFT, "overlap")
"""Columns of the step log that mean the same for every method; losses do not."""


def collect_training_curves(logs: Mapping[Run, Path]) -> pd.DataFrame:
    """The table of training curves, from the step log of each run.

    A row for each quantity and each step that measured the drift. What is logged at every step is
    its mean over the steps from there to the next measurement. A quantity that was not measured
    has no row. Errors are those of `read_step_log`.
    """
    tables = [pd.DataFrame(columns=list(COLUMNS["training_curves"]))] if not logs else []
    for run, path in logs.items():
        log = read_step_log(path).reindex(columns=["step", *CURVES])
        means = log.groupby(log[DRIFT].notna().cumsum()).agg(
            {"step": "min", **dict.fromkeys(CURVES, "mean")}
        )
        tables.append(means.melt("step", var_name="quantity").dropna().assign(**asdict(run)))
    table = pd.concat(tables, ignore_index=True)[list(COLUMNS["training_curves"])]
    return table.sort_values([*RUN_COLUMNS, "quantity", "step"], kind="stable", ignore_index=True)
