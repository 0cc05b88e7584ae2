"""States that pi_0 visits, as one tidy table, and what the figures read off it.

A row is one response position of one rollout of pi_0, with p = student and q = teacher there:

model, problem_id      whose rollout, on which problem
rollout, position      number of the rollout, and of the token in its response, from 0
token                  the response token
entropy                of pi_0's next-token distribution, in nats
selected               whether the entropy is among the rollout's highest tenth
overlap                sum_i sqrt(p_i q_i)
top_token              j* = argmax q
q_star, p_star         teacher's and student's mass on j*
gradient_<divergence>  norm of its gradient with respect to the student's logits
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from geosd.scores.tidy import read_tidy

DIVERGENCES = ("fwdkl", "revkl", "hellinger")
COLUMNS = {
    **dict.fromkeys(("model", "problem_id"), str),
    **dict.fromkeys(("rollout", "position", "token"), int),
    "entropy": float,
    "selected": bool,
    "overlap": float,
    "top_token": int,
    **dict.fromkeys(("q_star", "p_star"), float),
    **{f"gradient_{name}": float for name in DIVERGENCES},
}
SELECTED_SHARE = 0.1
"""Of a rollout's positions, those that are selected (paper, section 5.1: top 10 %)."""
SURE, UNLIKELY = 0.8, 0.1
"""The mismatch region: q* >= SURE and p* <= UNLIKELY (paper, Teacher top-token support)."""


def most_uncertain(
    entropy: Sequence[float], rollout: Sequence[int], share: float = SELECTED_SHARE
) -> np.ndarray:
    """Which positions are among the highest `share` of their own rollout by entropy.

    Args:
        entropy: Of each position.
        rollout: The rollout of each position.
        share: Of T positions the ceil(share T) highest are taken, so at least one of each rollout.

    Returns:
        Boolean, one a position. Of positions that tie, the earlier is taken.
    """
    values, owner = np.asarray(entropy, dtype=float), np.asarray(rollout)
    chosen = np.zeros(len(values), dtype=bool)
    for name in np.unique(owner):
        (positions,) = np.nonzero(owner == name)
        # The small term undoes products such as 0.1 * 30 = 3.0000000000000004.
        count = math.ceil(share * len(positions) - 1e-9)
        chosen[positions[np.argsort(-values[positions], kind="stable")[:count]]] = True
    return chosen


def mismatch_share(states: pd.DataFrame) -> float:
    """Share of positions where the teacher is sure of a token that the student finds unlikely."""
    return float(((states["q_star"] >= SURE) & (states["p_star"] <= UNLIKELY)).mean())


def group_by_overlap(states: pd.DataFrame, bins: int = 20, least: int = 10) -> pd.DataFrame:
    """States with the bin of equal width, from 0 to 1, that their overlap lies in.

    Args:
        states: The tidy table of one model.
        bins: How many.
        least: Positions that a bin must hold; the states of others are left out: quartiles of so
            few would be noise.

    Returns:
        The states with a column `mean_overlap`: the mean over the positions of their bin.
    """
    # rho may exceed 1 by rounding; its last bin is closed.
    bin_of_state = np.clip((states["overlap"] * bins).astype(int), 0, bins - 1).to_numpy()
    overlaps = states.groupby(bin_of_state)["overlap"]
    grouped = states.assign(mean_overlap=overlaps.transform("mean"))
    return grouped[overlaps.transform("size") >= least]


def read(paths: Sequence[Path]) -> pd.DataFrame:
    """The tables of several models as one; see `read_tidy`."""
    return read_tidy(paths, COLUMNS, "a table of states", "states")
