"""The paper's published numbers, transcribed in `published.yaml`."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

import yaml

BASELINES = ("sft", "grpo", "fwdkl", "revkl", "jsd", "skewkl", "tropd", "tip")
"""The methods that the paper compares GeoSD with."""


@dataclass(frozen=True)
class _PublishedNumber:
    """One number of the paper's tables as printed, over n runs, with the table's LaTeX label.

    sd and n are None where the paper does not say them.
    """

    mean: float
    sd: float | None
    n: int | None
    table: str


@cache
def published() -> Mapping[str, Any]:
    """All published numbers of the paper: the content of `published.yaml`."""
    text = resources.files("geosd.claims").joinpath("published.yaml").read_text(encoding="utf-8")
    return yaml.safe_load(text)


def published_family(model: str) -> str | None:
    """The model family of the paper that a study's model stands for, or None."""
    return published()["stands_for"].get(model)


def published_number(
    family: str | None, variant: str, benchmark: str, metric: str = "avg@k"
) -> _PublishedNumber | None:
    """Look up a result of one of the paper's families; None where the paper does not have it.

    The metric is "avg@k" or "pass@k", k = 16, or "drift/pi_0" or "mismatch" (then the benchmark
    does not matter). The benchmark is "id", "ood_avg" or one of the paper's OOD benchmarks.
    """

    def cell(table: str, column: str) -> Any:
        families = published()[table]["families"]
        return families.get(family, {}).get(variant, {}).get(column)

    column = benchmark
    if metric == "avg@k":
        for name in ("main_id_ood", "ood_per_bench"):
            if (both := cell(name, benchmark)) is not None:
                table = published()[name]
                return _PublishedNumber(both[0], both[1], table["n"], table["label"])
    elif metric == "pass@k" and benchmark == "ood_avg":
        column = "ood_pass16"
    elif metric == "drift/pi_0":
        column = "d_fr"
    elif metric == "mismatch" and family == "Qwen3-8B":  # that of its analyses
        share = next(e for e in published()["text"] if e["key"] == "mismatch_share_percent")
        return _PublishedNumber(share["value"], None, None, share["place"])
    else:
        return None
    value = cell("ablation", column)
    if value is None:
        return None
    return _PublishedNumber(value, None, None, published()["ablation"]["label"])
