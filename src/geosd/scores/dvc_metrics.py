"""The few numbers of a study that `dvc metrics diff` compares from commit to commit."""

import pandas as pd

from geosd.scores.score_table import ID, OOD_AVERAGE, scores_by_seed
from geosd.scores.tidy import select_rows

LABELS = {ID: "ID", OOD_AVERAGE: "OOD"}


def dvc_metrics(scores: pd.DataFrame) -> dict[str, dict[str, dict[str, float]]]:
    """The content of `metrics.json`: each variant's accuracy in and out of distribution.

    It is model -> variant -> name of the number -> percent, rounded to hundredths: `ID avg@k`,
    `ID pass@k`, `OOD avg@k` and `OOD pass@k`, means over runs, with the largest k there is.
    """
    largest = {
        name: int(select_rows(scores, metric=name)["k"].max()) for name in ("avg@k", "pass@k")
    }
    numbers_by_run: dict[str, dict[str, dict[str, float]]] = {}
    for (model, variant), _ in scores.groupby(["model", "variant"], sort=False):
        numbers = {
            f"{label} {metric.replace('k', str(k))}": scores_by_seed(
                scores, str(model), str(variant), benchmark, metric, k
            ).mean()
            for benchmark, label in LABELS.items()
            for metric, k in largest.items()
        }
        numbers_by_run.setdefault(str(model), {})[str(variant)] = {
            name: round(float(number), 2) for name, number in numbers.items() if pd.notna(number)
        }
    return numbers_by_run
