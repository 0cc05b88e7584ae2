"""Quantities of the table of states that pi_0 visits."""

import math
from collections.abc import Sequence

import numpy as np
import pandas as pd

from geosd.mismatch_region import in_mismatch_region
from geosd.scores.tidy import select_tidy_rows

SELECTED_SHARE = 0.1
"""Of a rollout's positions, those that are selected (paper, section 5.1: top 10 %)."""


def state_table_of_model(states: pd.DataFrame, model: str) -> pd.DataFrame:
    """A model's rows of the table of states.

    Raises:
        ValueError: There is none.
    """
    rows = select_tidy_rows(states, model=model)
    if rows.empty:
        raise ValueError(
            f"{model} has no states.\nHint: let the workflow run `states` for every model of"
            " the study."
        )
    return rows


def most_uncertain_states(
    entropy: Sequence[float], rollout: Sequence[int], share: float = SELECTED_SHARE
) -> np.ndarray:
    """The column `selected` of the table of states: a rollout's `share` of highest entropy.

    Of T positions the ceil(share T) highest are taken, so at least one of each rollout; of
    positions that tie, the earlier. `entropy`, `rollout` and the result have one value a position.
    """
    values, owner = np.asarray(entropy, dtype=float), np.asarray(rollout)
    chosen = np.zeros(len(values), dtype=bool)
    for name in np.unique(owner):
        (positions,) = np.nonzero(owner == name)
        # The small term undoes products such as 0.1 * 30 = 3.0000000000000004.
        count = math.ceil(share * len(positions) - 1e-9)
        chosen[positions[np.argsort(-values[positions], kind="stable")[:count]]] = True
    return chosen


def state_mismatch_share(states: pd.DataFrame) -> float:
    """Share of states in the mismatch region: the teacher sure of a token, the student not."""
    return float(in_mismatch_region(states["q_star"], states["p_star"]).mean())


def bin_states_by_overlap(states: pd.DataFrame, bins: int = 20, least: int = 10) -> pd.DataFrame:
    """Add the mean overlap of its bin, `mean_overlap`, to each state of one model's tidy table.

    Bins of overlap are of equal width in [0, 1]. States of a bin that holds fewer than `least`
    positions are left out: quartiles of so few would be noise.
    """
    # rho may exceed 1 by rounding; its last bin is closed.
    bin_of_state = np.clip((states["overlap"] * bins).astype(int), 0, bins - 1).to_numpy()
    overlaps = states.groupby(bin_of_state)["overlap"]
    grouped = states.assign(mean_overlap=overlaps.transform("mean"))
    return grouped[overlaps.transform("size") >= least]
