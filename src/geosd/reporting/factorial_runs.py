"""The runs of a factorial of GeoSD's parts, as its tables and its figure need them."""

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from geosd.reporting.method_style import METHODS
from geosd.reporting.run_accuracies import drift_of_runs, sweep_run_gains
from geosd.scores.factorial_effects import factorial_curvature_ratio

DIVERGENCE, RATIO, OPTIMISER = FACTORS = ("divergence", "ratio", "optimiser")
"""Columns of a run: the divergence, the curvature ratio of the proximal term, the optimiser."""
DIVERGENCES = {
    "hellinger": "Hellinger",
    "jsd": METHODS["jsd"].label,
    "fwdkl": METHODS["fwdkl"].label,
    "revkl": METHODS["revkl"].label,
}
"""Each divergence and its name, the paper's first: others are compared with it."""
OPTIMISERS = {"kfac": "K-FAC", "adamw": "AdamW"}
"""Each rule and its name; K-FAC has AdamW behind it."""
Parts = Mapping[str, Mapping[str, Any]]
"""Candidate -> `divergence`, `drift_penalty`, `rule` and `steps` of its training."""


def factorial_run_stops(
    scores: pd.DataFrame, drift: pd.DataFrame, model: str, parts: Parts
) -> pd.DataFrame:
    """A row for each step at which a run was judged: `FACTORS`, `seed`, `draw`, `steps`, values.

    The values are the gains `id` and `ood_avg` over pi_0 of the same seed, in points, and `drift`,
    in radians. Rows are in the order of the names above, ratios ascending.
    """
    points = [
        {
            "run": name,
            "variant": name,
            DIVERGENCE: of["divergence"],
            RATIO: factorial_curvature_ratio(of["divergence"], of["drift_penalty"]),
            OPTIMISER: of["rule"],
            "steps": of["steps"],
        }
        for name, of in parts.items()
    ]
    stops = sweep_run_gains(scores, model, points)
    stops = stops.merge(drift_of_runs(drift, model, parts), on=["run", "seed"])
    return factorial_runs_in_order(stops, FACTORS)


def factorial_runs_in_order(stops: pd.DataFrame, factors: Sequence[str]) -> pd.DataFrame:
    """Judged steps by factors, seed and steps: divergences and optimisers in the order of names."""
    named = {DIVERGENCE: DIVERGENCES, OPTIMISER: OPTIMISERS}
    order = {factor: list(names) for factor, names in named.items() if factor in factors}
    for factor, names in order.items():
        stops[factor] = pd.Categorical(stops[factor], names, ordered=True)
    stops = stops.sort_values([*factors, "seed", "steps"], kind="stable", ignore_index=True)
    return stops.astype({factor: object for factor in order})
