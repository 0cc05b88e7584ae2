"""Which candidate of a selection of hyperparameters is chosen."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from geosd.scores.tidy_files import select_rows

VALIDATION = "select_validation"
"""The benchmark of the validation problems."""
RULE = f"highest avg@k on {VALIDATION}, mean over models and seeds; of equals the first of the grid"
"""What `best_candidate` does, in one line."""


def best_candidate(scores: pd.DataFrame, candidates: Sequence[str]) -> str:
    """Choose the candidate of a hyperparameter grid with the highest avg@k on validation problems.

    The mean is over models and seeds. Of equals the first is chosen: grids are written from small
    steps to large, and of two rates that do as well the smaller moves the model less.

    Raises:
        ValueError: A candidate has not been validated.

    Source: the paper, Appendix Baselines: selected on 200 validation problems by avg@8.
    """
    validated = select_rows(scores, benchmark=VALIDATION, metric="avg@k")
    means = validated.groupby("variant")["value"].mean()
    if missing := [name for name in candidates if name not in means.index]:
        raise ValueError(
            f"No validation of {', '.join(missing)}; judged are {', '.join(means.index)}.\n"
            "Hint: let the workflow finish the selection first."
        )
    return max(candidates, key=lambda name: means[name])
