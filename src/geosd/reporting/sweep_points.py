"""The runs of a sweep, grouped by the variant that is swept."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from geosd.reporting.style import ordered
from geosd.scores.score_table import values

Point = Mapping[str, Any]
Scored = tuple[Point, tuple[pd.Series, ...]]


def by_variant(
    scores: pd.DataFrame, model: str, points: Sequence[Point], benchmarks: Sequence[str]
) -> dict[str, list[Scored]]:
    """Every point of a model's sweep that has scores.

    Args:
        scores: Tidy scores.
        model: The model.
        points: `run` (the name in the scores), `variant`, and the value of each swept key.
        benchmarks: Benchmarks that a point must have been scored on.

    Returns:
        Variant, in the paper's order -> each point, and its accuracies by seed on each benchmark.
    """
    found: dict[str, list[Scored]] = {}
    for point in points:
        runs = tuple(values(scores, model, point["run"], name, "avg@k") for name in benchmarks)
        if not any(of.empty for of in runs):
            found.setdefault(point["variant"], []).append((point, runs))
    return {variant: found[variant] for variant in ordered(found)}


def untrained(scores: pd.DataFrame, model: str, benchmarks: Sequence[str]) -> list[pd.Series]:
    """Accuracies of pi_0, where every sweep begins, by seed on each benchmark.

    Raises:
        ValueError: pi_0 was not evaluated on one of them.
    """
    runs = [values(scores, model, "pi_0", name, "avg@k") for name in benchmarks]
    if lacking := [name for name, of in zip(benchmarks, runs, strict=True) if of.empty]:
        raise ValueError(
            f"{model}: pi_0 has no score on {' and '.join(lacking)}, so there is nothing to compare"
            " with.\nHint: add pi_0 to the study's methods."
        )
    return runs
