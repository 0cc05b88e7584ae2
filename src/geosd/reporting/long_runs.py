"""The judged steps of long trainings, as their table and their figure need them."""

from collections.abc import Mapping
from typing import Any

import pandas as pd

from geosd.reporting.factorial_runs import DIVERGENCE, factorial_runs_in_order
from geosd.reporting.run_accuracies import drift_of_runs, sweep_run_gains

REFRESH = "refresh"
CELL = (DIVERGENCE, REFRESH)
"""Columns of a run: the divergence, and the steps between refreshes of the anchor."""
LongRuns = Mapping[str, Mapping[str, Any]]
"""Candidate -> `divergence`, `anchor_every` and `steps` of its training."""


def long_run_steps(
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
    stops = sweep_run_gains(scores, model, points)
    stops = stops.merge(drift_of_runs(drift, model, long_runs), on=["run", "seed"])
    return factorial_runs_in_order(stops, CELL)


def long_run_refresh_words(refresh: int, steps: int) -> str:
    """How often an anchor is refreshed in a training of so many steps, in words."""
    return "never" if refresh > steps else f"every {refresh}"
