"""Accuracies as figures need them: a table with a row for each run, a column a benchmark."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from geosd.reporting.method_style import ordered
from geosd.scores.score_table import scores_by_seed


def run_accuracies(
    scores: pd.DataFrame, model: str, variant: str, benchmarks: Sequence[str]
) -> pd.DataFrame:
    """Accuracies of a variant: a row for each run (`seed`), a column for each benchmark.

    Empty where a benchmark was not scored.
    """
    runs = {name: scores_by_seed(scores, model, variant, name) for name in benchmarks}
    if any(column.empty for column in runs.values()):
        return pd.DataFrame(columns=["seed", *benchmarks])
    return pd.DataFrame(runs).rename_axis("seed").reset_index()


def base_accuracies(scores: pd.DataFrame, model: str, benchmarks: Sequence[str]) -> pd.DataFrame:
    """Accuracies of pi_0: a row for each run (index `seed`), a column for each benchmark.

    Raises:
        ValueError: pi_0 was not evaluated on one of the benchmarks.
    """
    missing = [name for name in benchmarks if run_accuracies(scores, model, "pi_0", [name]).empty]
    if missing:
        raise ValueError(
            f"{model}: pi_0 has no score on {' and '.join(missing)}, so there is nothing to compare"
            " with.\nHint: add pi_0 to the study's methods."
        )
    return run_accuracies(scores, model, "pi_0", benchmarks).set_index("seed")


def sweep_accuracies(
    scores: pd.DataFrame,
    model: str,
    points: Sequence[Mapping[str, Any]],
    benchmarks: Sequence[str],
) -> pd.DataFrame:
    """Accuracies of every run of a model's sweep: a row for each run, a column a benchmark.

    Each point has `run` (the name in the scores), `variant`, and the value of each swept key; it
    must have been scored on all `benchmarks`.

    Returns:
        Columns of the points, then `seed` and the benchmarks; variants in the paper's order, the
        points of each in the order given.
    """
    tables = [
        run_accuracies(scores, model, point["run"], benchmarks).assign(**point)
        for variant in ordered(point["variant"] for point in points)
        for point in points
        if point["variant"] == variant
    ]
    tables = [table for table in tables if not table.empty]
    keys = [*(points[0] if points else ("run", "variant")), "seed", *benchmarks]
    if not tables:
        return pd.DataFrame(columns=keys)
    return pd.concat(tables, ignore_index=True)[keys]
