"""Accuracies of runs as figures need them: one row a run, one column a benchmark."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from geosd.reporting.style import ordered
from geosd.scores.score_table import values


def run_scores(
    scores: pd.DataFrame, model: str, variant: str, benchmarks: Sequence[str]
) -> pd.DataFrame:
    """Accuracy of a variant on each benchmark, by `seed`; empty where one was not scored."""
    runs = {name: values(scores, model, variant, name, "avg@k") for name in benchmarks}
    if any(column.empty for column in runs.values()):
        return pd.DataFrame(columns=["seed", *benchmarks])
    return pd.DataFrame(runs).rename_axis("seed").reset_index()


def base_scores(scores: pd.DataFrame, model: str, benchmarks: Sequence[str]) -> pd.DataFrame:
    """The same of pi_0, where every sweep begins, with the seed as index.

    Raises:
        ValueError: pi_0 was not evaluated on one of the benchmarks.
    """
    missing = [name for name in benchmarks if run_scores(scores, model, "pi_0", [name]).empty]
    if missing:
        raise ValueError(
            f"{model}: pi_0 has no score on {' and '.join(missing)}, so there is nothing to compare"
            " with.\nHint: add pi_0 to the study's methods."
        )
    return run_scores(scores, model, "pi_0", benchmarks).set_index("seed")


def sweep_scores(
    scores: pd.DataFrame,
    model: str,
    points: Sequence[Mapping[str, Any]],
    benchmarks: Sequence[str],
) -> pd.DataFrame:
    """Every run of a model's sweep that has scores.

    Each point has `run` (the name in the scores), `variant`, and the value of each swept key; it
    must have been scored on all `benchmarks`.

    Returns:
        Columns of the points, then `seed` and the benchmarks; variants in the paper's order, the
        points of each in the order given.
    """
    tables = [
        run_scores(scores, model, point["run"], benchmarks).assign(**point)
        for variant in ordered(point["variant"] for point in points)
        for point in points
        if point["variant"] == variant
    ]
    tables = [table for table in tables if not table.empty]
    keys = [*(points[0] if points else ("run", "variant")), "seed", *benchmarks]
    if not tables:
        return pd.DataFrame(columns=keys)
    return pd.concat(tables, ignore_index=True)[keys]
