"""The judged steps of long trainings, as their table and their figure need them."""

from collections.abc import Mapping
from typing import Any

import pandas as pd

from geosd.reporting.method_style import METHODS
from geosd.reporting.run_accuracies import sweep_gains
from geosd.scores.equal_movement import DRIFT
from geosd.scores.step_log_tables import final_drift

DIVERGENCE, REFRESH = CELL = ("divergence", "refresh")
"""Columns of a run: the divergence, and the steps between refreshes of the anchor."""
DIVERGENCES = {
    "hellinger": "Hellinger",
    "jsd": METHODS["jsd"].label,
    "fwdkl": METHODS["fwdkl"].label,
    "revkl": METHODS["revkl"].label,
}
"""Each divergence and its name, the paper's first."""
LongRuns = Mapping[str, Mapping[str, Any]]
"""Candidate -> `divergence`, `anchor_every` and `steps` of its training."""


def judged_steps(
    scores: pd.DataFrame, drift: pd.DataFrame, model: str, long_runs: LongRuns
) -> pd.DataFrame:
    """A row for each step at which a run was judged: `CELL`, `seed`, `draw`, `steps`, values.

    The values are the gains `id` and `ood_avg` over pi_0 of the same seed, in points, and `drift`,
    in radians. Divergences are in the order of `DIVERGENCES`, refreshes and steps ascend.
    """
    points = [
        {
            "run": name,
            "variant": name,
            DIVERGENCE: of["divergence"],
            REFRESH: of["anchor_every"],
            "steps": of["steps"],
        }
        for name, of in long_runs.items()
    ]
    gains = sweep_gains(scores, model, points)
    moved = [final_drift(drift, model, name).rename(DRIFT) for name in long_runs]
    by_run = pd.concat(moved, keys=list(long_runs), names=["run"]).reset_index()
    stops = gains.merge(by_run, on=["run", "seed"])
    places = {name: place for place, name in enumerate(DIVERGENCES)}
    stops["place"] = stops[DIVERGENCE].map(places)
    order = ["place", REFRESH, "seed", "steps"]
    stops = stops.sort_values(order, kind="stable", ignore_index=True)
    return stops.drop(columns="place")


def refresh_words(refresh: int, steps: int) -> str:
    """How often an anchor is refreshed in a training of so many steps, in words."""
    return "never" if refresh > steps else f"every {refresh}"
