"""When a run collapses: the one rule of all tables, captions and pages.

A run collapses on some sets of problems if on any of them it is ten points or more below pi_0 of
the same seed. Where a result says that runs collapse, it says on which problems: `ON_TEST`, which
are in and out of distribution, or `ON_VALIDATION`. Validation problems are in distribution alone,
so a run that keeps its accuracy on them may have lost that out of distribution.
"""

import pandas as pd

COLLAPSE = 10.0
"""Percentage points below pi_0 from which on a run counts as collapsed."""
ON_TEST = "in or out of distribution on the test problems"
ON_VALIDATION = "on the ID validation problems"


def collapses(gains: pd.DataFrame) -> pd.Series:
    """Whether each run collapses on the problems of its gains.

    `gains` has a row for each run and a column for each set of problems: the accuracy minus that of
    pi_0 of the same seed, in percentage points. Where a gain is missing, the others decide.

    Example:
        >>> collapses(pd.DataFrame({"id": [9.4, -2.0], "ood_avg": [-12.9, -9.9]})).tolist()
        [True, False]
    """
    return (gains <= -COLLAPSE).any(axis="columns")


def collapse_rule(problems: str) -> str:
    """The rule in one sentence, with the problems that a result counts on.

    `problems` is `ON_TEST`, `ON_VALIDATION`, or their like.
    """
    return (
        f"A run collapses where it is {COLLAPSE:g} points or more below π₀ of the same seed,"
        f" {problems}."
    )
