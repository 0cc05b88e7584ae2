"""The paper's published numbers, and the recomputation of its significance table from them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from itertools import product
from typing import Any

import yaml

from geosd.scores.statistics import Group, hedges_g, holm, welch

BASELINES = ("sft", "grpo", "fwdkl", "revkl", "jsd", "skewkl", "tropd", "tip")
"""The methods that the paper compares GeoSD with."""
ROUNDING = 0.05
"""Half a unit of the last printed digit of the paper's means and standard deviations."""


@dataclass(frozen=True)
class Published:
    """One published number.

    Attributes:
        mean: As printed.
        sd: Over runs, as printed; None where the paper gives none.
        n: Runs; None where the paper does not say.
        table: LaTeX label of the table it stands in.
    """

    mean: float
    sd: float | None
    n: int | None
    table: str


@cache
def published() -> Mapping[str, Any]:
    """The transcription, `published.yaml`, as plain values."""
    text = resources.files("geosd.claims").joinpath("published.yaml").read_text(encoding="utf-8")
    return yaml.safe_load(text)


def gpu_hours() -> dict[str, float]:
    """Rule -> GPU-hours of one 8B job on an H200 (Appendix Runtime)."""
    values = {entry["key"]: entry["value"] for entry in published()["text"]}
    return {rule: values[f"gpu_hours_{rule}"] for rule in ("train", "evaluate", "pool")}


def family(model: str) -> str | None:
    """The paper's family that a study's model stands for, or None."""
    return published()["stands_for"].get(model)


def lookup(
    of_family: str | None, variant: str, benchmark: str, metric: str = "avg@k", k: int | None = 16
) -> Published | None:
    """A published number, or None where the paper does not have it.

    Args:
        of_family: The paper's family name.
        variant: Variant of this project.
        benchmark: "id", "ood_avg" or one of the paper's OOD benchmarks (aime24, ...).
        metric: "avg@k", "pass@k", or "drift/pi_0" (then the benchmark does not matter).
        k: The metric's k; the paper has 16 only.
    """
    data = published()
    if metric == "avg@k":
        for table in ("main_id_ood", "ood_per_bench"):
            cell = _cell(data[table], of_family, variant, benchmark)
            if cell is not None:
                return Published(cell[0], cell[1], data[table]["n"], data[table]["label"])
        key = benchmark
    elif metric == "pass@k" and benchmark == "ood_avg" and k in (16, None):
        key = "ood_pass16"
    elif metric == "drift/pi_0":
        key = "d_fr"
    else:
        return None
    value = _cell(data["ablation"], of_family, variant, key)
    return None if value is None else Published(value, None, None, data["ablation"]["label"])


def _cell(table: Mapping[str, Any], of_family: str | None, variant: str, column: str) -> Any:
    return table["families"].get(of_family, {}).get(variant, {}).get(column)


@dataclass(frozen=True)
class Recomputed:
    """One row of the paper's significance table, from its published means and deviations.

    Attributes:
        family: The paper's family.
        values: Each printed quantity from the inputs as printed.
        span: The smallest and the largest value of each quantity over all inputs that are printed
            the same: every mean and deviation moved by up to half a unit of its last digit.
    """

    family: str
    values: dict[str, float]
    span: dict[str, tuple[float, float]]


def recompute_significance(steps: int = 5) -> list[Recomputed]:
    """Recompute the paper's significance table (Table sig).

    Args:
        steps: Points per input on the grid over its rounding interval, ends included. The
            quantities are monotone in the means, and in practice in the deviations.

    Returns:
        A row per family with difference, low, high, g, and p_holm (Holm over the families; the
        span takes the factor that the family's rank gives it with the inputs as printed).
    """
    main, printed = published()["main_id_ood"], published()["significance"]
    pairs = {}
    for name, row in printed["families"].items():
        cells = main["families"][name]
        pairs[name] = (cells["geosd"]["ood_avg"], cells[row["baseline"]]["ood_avg"])
    n = printed["n"]
    nominal = {name: _row(*a, *b, n) for name, (a, b) in pairs.items()}
    adjusted = holm([row["p_holm"] for row in nominal.values()])
    offsets = [ROUNDING * (2 * i / (steps - 1) - 1) for i in range(steps)]
    recomputed = []
    for (name, row), p in zip(nominal.items(), adjusted, strict=True):
        factor = p / row["p_holm"]
        (ma, sa), (mb, sb) = pairs[name]
        # Only the difference of the means matters, so their two offsets are one of twice the size.
        grid = [
            _row(ma + 2 * dm, sa + da, mb, sb + db, n) for dm, da, db in product(offsets, repeat=3)
        ]
        span = {key: (min(r[key] for r in grid), max(r[key] for r in grid)) for key in row}
        span["p_holm"] = (factor * span["p_holm"][0], factor * span["p_holm"][1])
        recomputed.append(Recomputed(name, {**row, "p_holm": p}, span))
    return recomputed


def _row(mean_a: float, sd_a: float, mean_b: float, sd_b: float, n: int) -> dict[str, float]:
    a, b = Group(mean_a, sd_a, n), Group(mean_b, sd_b, n)
    test = welch(a, b)
    return {
        "difference": test.difference,
        "low": test.low,
        "high": test.high,
        "g": hedges_g(a, b),
        "p_holm": test.p,
    }
