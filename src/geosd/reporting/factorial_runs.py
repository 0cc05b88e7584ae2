"""The runs of a factorial of GeoSD's parts, as its tables and its figure need them."""

from collections.abc import Mapping
from typing import Any

import pandas as pd

from geosd.reporting.method_style import METHODS
from geosd.reporting.run_accuracies import sweep_gains
from geosd.scores.equal_movement import DRIFT
from geosd.scores.factorial_effects import curvature_ratio
from geosd.scores.step_log_tables import final_drift

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


def stops_of_runs(
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
            RATIO: curvature_ratio(of["divergence"], of["drift_penalty"]),
            OPTIMISER: of["rule"],
            "steps": of["steps"],
        }
        for name, of in parts.items()
    ]
    gains = sweep_gains(scores, model, points)
    moved = [final_drift(drift, model, name).rename(DRIFT) for name in parts]
    by_run = pd.concat(moved, keys=list(parts), names=["run"]).reset_index()
    stops = gains.merge(by_run, on=["run", "seed"])
    order = {
        DIVERGENCE: list(DIVERGENCES),
        OPTIMISER: list(OPTIMISERS),
    }
    for factor, names in order.items():
        stops[factor] = pd.Categorical(stops[factor], names, ordered=True)
    stops = stops.sort_values([*FACTORS, "seed", "steps"], kind="stable", ignore_index=True)
    return stops.astype({factor: object for factor in order})
