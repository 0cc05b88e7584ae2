"""The student's mass on the teacher's ranks over checkpoints, as tidy tables.

A row is one mean of one checkpoint:

model, variant, seed   the run
step                   updates done; 0 is pi_0, the last is the end of training
ranking                who ranked the tokens, with the solution: "pi_0" (the same tokens for every
                       checkpoint) or "live" (the checkpoint itself, the teacher of training)
rank                   1 is the teacher's first choice
mass                   mean of the student's probability of that token over the selected positions
positions              how many these are
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from geosd.scores.tidy import RUN_COLUMNS, read_tidy, select

COLUMNS = RUN_COLUMNS | dict(step=int, ranking=str, rank=int, mass=float, positions=int)


def read(paths: Sequence[Path]) -> pd.DataFrame:
    """The tables of several runs as one; see `read_tidy`."""
    return read_tidy(paths, COLUMNS, "an alignment table", "alignment")


def mass_by_step(alignment: pd.DataFrame, model: str, variant: str, ranking: str) -> pd.DataFrame:
    """One row a checkpoint (index `step`, ascending), one column a rank: mean mass over seeds.

    Raises:
        ValueError: The runs of the variant have no such rows, or not the same checkpoints.
    """
    rows = select(alignment, model=model, variant=variant, ranking=ranking)
    runs = rows.groupby(["step", "rank"])["mass"].agg(["mean", "size"])
    if runs.empty or runs["size"].nunique() != 1:
        seen = sorted(rows["seed"].unique())
        raise ValueError(
            f"alignment of {variant} on {model}, tokens ranked by {ranking}: seeds {seen} have"
            f" {'no rows' if runs.empty else 'unlike checkpoints'}.\nHint: let the workflow run"
            " `alignment` again for all seeds of the study."
        )
    return runs["mean"].unstack("rank")
