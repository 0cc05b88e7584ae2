"""What is read off the states: the uncertain ones, the mismatch, the bins of overlap."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from geosd.scores.state_table import (
    bin_states_by_overlap,
    most_uncertain_states,
    state_mismatch_share,
)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.lists(st.integers(0, 6), min_size=1, max_size=41), min_size=1, max_size=4),
    st.sampled_from([0.1, 0.25, 0.5, 1.0]),
)
def test_the_most_uncertain_are_those_that_few_others_of_their_rollout_exceed(rollouts, share):
    values = [float(v) for rollout in rollouts for v in rollout]
    owner = [name for name, rollout in enumerate(rollouts) for _ in rollout]
    chosen = most_uncertain_states(values, owner, share)
    tenths = {0.1: (1, 10), 0.25: (1, 4), 0.5: (1, 2), 1.0: (1, 1)}[share]
    for name, rollout in enumerate(rollouts):
        chosen_in_rollout = [c for c, o in zip(chosen, owner, strict=True) if o == name]
        count = -(-tenths[0] * len(rollout) // tenths[1])  # exact ceiling, in integers
        # Brute force: a position is in if fewer than `count` others stand before it.
        expected = [
            sum((other, -j) > (value, -i) for j, other in enumerate(rollout)) < count
            for i, value in enumerate(rollout)
        ]
        assert chosen_in_rollout == expected


def test_interleaved_rollouts_keep_to_themselves():
    chosen = most_uncertain_states([1, 9, 2, 8], [0, 1, 0, 1], 0.5)
    assert chosen.tolist() == [False, True, True, False]


def states(n=400, seed=0):
    draw = np.random.default_rng(seed)
    table = pd.DataFrame({"overlap": draw.random(n), "q_star": draw.random(n)})
    table["p_star"] = draw.random(n)
    for name in ("fwdkl", "revkl", "hellinger"):
        table[f"gradient_{name}"] = draw.random(n)
    return table


def test_the_mismatch_region_is_closed_at_both_borders():
    table = pd.DataFrame({"q_star": [0.8, 0.79, 0.9, 1.0], "p_star": [0.1, 0.0, 0.11, 0.0]})
    assert state_mismatch_share(table) == 0.5


def test_bins_of_overlap_hold_what_lies_in_them():
    table = states()
    found = bin_states_by_overlap(table, bins=4, least=1)
    assert len(found) == len(table)
    for at, (mean, rows) in enumerate(found.groupby("mean_overlap")):
        inside = table[(table["overlap"] >= at / 4) & (table["overlap"] < (at + 1) / 4)]
        pd.testing.assert_frame_equal(rows.drop(columns="mean_overlap"), inside)
        assert mean == pytest.approx(inside["overlap"].mean())


def test_bins_with_few_positions_are_left_out_and_full_overlap_is_in_the_last():
    table = states(30)
    table["overlap"] = [0.1] * 9 + [1.0 + 1e-9] * 21
    found = bin_states_by_overlap(table, least=10)
    assert len(found) == 21
    assert found["mean_overlap"].unique() == pytest.approx([1.0], abs=1e-6)
