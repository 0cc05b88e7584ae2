"""How far every run was from pi_0 at each step, as one tidy table.

A row is one step of one run: model, variant, seed, step, value. The value is the step log's
`drift/pi_0`: the mean Fisher-Rao distance d_FR (not squared, in radians, at most pi) from pi_0 over
the response positions that the student visited at that step. Steps at which a run did not measure
it (`training.diagnose_every`) have no row.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import pandas as pd

from geosd.scores.score_table import Run
from geosd.scores.tidy import RUN_COLUMNS, read_tidy

COLUMNS = RUN_COLUMNS | {"step": int, "value": float}
QUANTITY = "drift/pi_0"


def collect(logs: Mapping[Run, Path]) -> pd.DataFrame:
    """The drift of every run at every step that measured it.

    Args:
        logs: The step log of each run.

    Raises:
        FileNotFoundError: A run has no step log.
        ValueError: A step log has no column `step`, or does not measure the drift.
    """
    tables = []
    for run, path in logs.items():
        if not path.exists():
            raise FileNotFoundError(
                f"{path}: the step log is missing.\nHint: let the workflow train the run again."
            )
        log = pd.read_csv(path)
        if missing := [name for name in ("step", QUANTITY) if name not in log]:
            raise ValueError(
                f"{path}: missing column {', '.join(missing)}.\nHint: let the workflow train the"
                " run again."
            )
        measured = log[["step", QUANTITY]].dropna().sort_values("step", kind="stable")
        measured.columns = ["step", "value"]
        for place, name in enumerate(("model", "variant", "seed")):
            measured.insert(place, name, getattr(run, name))
        tables.append(measured)
    if not tables:
        return pd.DataFrame(columns=list(COLUMNS))
    return pd.concat(tables, ignore_index=True)


def read(files: Path | str | Sequence[Path]) -> pd.DataFrame:
    """Read the table back; see `read_tidy`."""
    return read_tidy(files, COLUMNS, "a table of drift over steps", "drift_over_steps")
