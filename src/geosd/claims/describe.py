"""Comparisons in words, for the ledger."""

from __future__ import annotations

from geosd.claims.schema import MODEL, Comparison, Computed, Side
from geosd.scores.drift_table import QUANTITIES

ANYWHERE = (
    *QUANTITIES,
    *("drift_path", "mass", "mass_gain", "mismatch", "overconfidence", "late_gain", "frontier_gap"),
)
"""Metrics that know no benchmark."""


def describe(comparison: Comparison) -> str:
    """A comparison, e.g. `geosd - fwdkl > 0, avg@k of ood_avg`."""
    margin = f"{comparison.margin:g}"
    sign = {"greater": f"> {margin}", "less": f"< {margin}", "within": f"within +-{margin}"}
    a, b = comparison.a, comparison.b
    # What both sides share is said once, at the end.
    benchmark, metric = (
        len({getattr(side, name) for side in comparison.sides}) == 1
        for name in ("benchmark", "metric")
    )
    told = _side(a, benchmark=not benchmark, metric=not metric)
    if b is not None:
        factor = "" if comparison.times == 1 else f"{comparison.times:g} x "
        told += f" - {factor}{_side(b, benchmark=not benchmark, metric=not metric)}"
    of = [a.metric] if metric else []
    if benchmark and a.metric not in ANYWHERE and not a.metric.startswith("gradient_"):
        of.append(f"of {a.benchmark}")
    if comparison.over is not None:
        of.append(f"over {comparison.over}")
    return f"{told} {sign[comparison.direction]}, {' '.join(of)}".rstrip(", ")


def _side(side: Side, *, benchmark: bool, metric: bool) -> str:
    model = side.said(MODEL)
    more = [side.metric] if metric else []
    more += [side.benchmark] if benchmark else []
    more += [model] if model else []
    more += [f"{key} {_value(value)}" for key, value in side.where if key != MODEL]
    return f"{side.variant} ({', '.join(more)})" if more else side.variant


def _value(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def describe_computed(one: Computed, ours: float) -> str:
    """A computed number, e.g. `snapshot of qwen3-8b: 16.38, printed 16.4`."""
    bound = "less than " if one.relation == "less" else ""
    return f"{one.quantity}: {ours:.{one.digits + 1}f}, printed {bound}{one.printed:.{one.digits}f}"
