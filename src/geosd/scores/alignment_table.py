"""What the figure and the claims on alignment read off the table of the student's mass by rank."""

from __future__ import annotations

import pandas as pd

from geosd.scores.tidy_files import select_rows


def mass_by_step(alignment: pd.DataFrame, model: str, variant: str, ranking: str) -> pd.DataFrame:
    """The student's mass on each rank of the teacher at each checkpoint, mean over seeds.

    Returns:
        One row a checkpoint (index `step`, ascending), one column a rank.

    Raises:
        ValueError: The runs of the variant have no such rows, or not the same checkpoints.
    """
    rows = select_rows(alignment, model=model, variant=variant, ranking=ranking)
    runs = rows.groupby(["step", "rank"])["mass"].agg(["mean", "size"])
    if runs.empty or runs["size"].nunique() != 1:
        seen = sorted(rows["seed"].unique())
        raise ValueError(
            f"alignment of {variant} on {model}, tokens ranked by {ranking}: seeds {seen} have"
            f" {'no rows' if runs.empty else 'unlike checkpoints'}.\nHint: let the workflow run"
            " `alignment` again for all seeds of the study."
        )
    return runs["mean"].unstack("rank")
