"""How far every run was from pi_0 at each step, as one tidy table.

A row is one step of one run: model, variant, seed, step, value. The value is the step log's
`drift/pi_0`: the mean Fisher-Rao distance d_FR (not squared, in radians, at most pi) from pi_0 over
the response positions that the student visited at that step. Steps at which a run did not measure
it (`training.diagnose_every`) have no row.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

import pandas as pd

from geosd.scores.drift_table import read_step_log
from geosd.scores.score_table import Run
from geosd.scores.tidy import RUN_COLUMNS, read_tidy

COLUMNS = RUN_COLUMNS | {"step": int, "value": float}
QUANTITY = "drift/pi_0"


def collect(logs: Mapping[Run, Path]) -> pd.DataFrame:
    """The drift of every run at every step that measured it, from the step log of each run.

    Raises:
        FileNotFoundError: A run has no step log.
        ValueError: A step log has no column `step`, or does not measure the drift.
    """
    tables = []
    for run, path in logs.items():
        log = read_step_log(path)
        if QUANTITY not in log:
            raise ValueError(
                f"{path}: missing column {QUANTITY}.\nHint: let the workflow train the run again."
            )
        table = log.rename(columns={QUANTITY: "value"})[["step", "value"]].dropna()
        tables.append(table.assign(**asdict(run)))
    if not tables:
        return pd.DataFrame(columns=list(COLUMNS))
    return pd.concat(tables, ignore_index=True)[list(COLUMNS)]


def read(files: Path | str | Sequence[Path]) -> pd.DataFrame:
    """Read the table back; see `read_tidy`."""
    return read_tidy(files, COLUMNS, "a table of drift over steps", "drift_over_steps")
