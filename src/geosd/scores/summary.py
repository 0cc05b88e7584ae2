"""The few numbers of a study that one compares from commit to commit: `dvc metrics diff`."""

from __future__ import annotations

import pandas as pd

from geosd.scores.score_table import ID, OOD_AVERAGE, values
from geosd.scores.tidy import select

LABELS = {ID: "ID", OOD_AVERAGE: "OOD"}


def summary(scores: pd.DataFrame) -> dict[str, dict[str, dict[str, float]]]:
    """Accuracy in and out of distribution, each a mean over the runs of a variant.

    Args:
        scores: Tidy scores.

    Returns:
        model -> variant -> name of the number -> percent, rounded to hundredths: `ID avg@k`,
        `ID pass@k`, `OOD avg@k` and `OOD pass@k`, with the largest k that was sampled.
    """
    largest = {name: int(select(scores, metric=name)["k"].max()) for name in ("avg@k", "pass@k")}
    numbers_by_run: dict[str, dict[str, dict[str, float]]] = {}
    for (model, variant), _ in scores.groupby(["model", "variant"], sort=False):
        numbers = {
            f"{label} {metric.replace('k', str(k))}": values(
                scores, str(model), str(variant), benchmark, metric, k
            ).mean()
            for benchmark, label in LABELS.items()
            for metric, k in largest.items()
        }
        numbers_by_run.setdefault(str(model), {})[str(variant)] = {
            name: round(float(number), 2) for name, number in numbers.items() if pd.notna(number)
        }
    return numbers_by_run
