"""OOD gain at equal movement: where a path from π₀ through its stops first gets so far."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest

from geosd.scores.equal_movement import (
    EQUAL_DRIFT,
    EQUAL_ID_GAIN,
    gains_at_equal_movement,
    value_where_reached,
)


@pytest.mark.parametrize(
    ("moved", "values", "expected"),
    [
        ([12.0], [-4.0], -2.0),  # half of the first line, from π₀
        ([3.0, 9.0], [-1.0, -4.0], -2.5),  # half of the second
        ([6.0, 9.0], [-1.5, -4.0], -1.5),  # at a stop
        ([8.0, 2.0, 10.0], [-4.0, -9.0, -20.0], -3.0),  # a path that returns counts once
        ([-2.0, 10.0], [1.0, -5.0], -3.0),  # two thirds of the way from -2 to 10
        ([5.9, 5.99], [0.0, 0.0], math.nan),  # nothing is extrapolated
        ([], [], math.nan),
    ],
)
def test_a_path_is_read_where_it_first_gets_so_far(moved, values, expected):
    assert value_where_reached(moved, values, 6.0) == pytest.approx(expected, nan_ok=True)


def test_a_path_that_never_turns_back_is_read_as_numpy_interpolates_it():
    draw = np.random.default_rng(0)
    for _ in range(50):
        moved, values = np.cumsum(draw.uniform(0.5, 3, 6)), draw.normal(size=6)
        at = draw.uniform(0.1, moved[-1])
        expected = np.interp(at, [0, *moved], [0, *values])
        assert value_where_reached(moved, values, at) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("at", [0.0, -1.0])
def test_a_path_is_not_compared_where_it_begins(at):
    with pytest.raises(ValueError, match="at more than 0"):
        value_where_reached([1.0], [1.0], at)


def stops(*rows):
    return pd.DataFrame(rows, columns=["cell", "seed", "steps", "id", "ood_avg", "drift"])


def test_each_run_has_its_values_whatever_the_order_of_its_stops():
    table = stops(
        ("a", 0, 200, 9.0, -6.0, 0.16),
        ("b", 0, 100, 4.0, 2.0, 0.05),
        ("a", 0, 100, 3.0, -1.0, 0.06),
    )
    runs = gains_at_equal_movement(table, ["cell", "seed"]).set_index("cell")
    assert runs.loc["a", "at_id_gain"] == pytest.approx(-1 - 5 * (EQUAL_ID_GAIN - 3) / 6)
    assert runs.loc["a", "at_drift"] == pytest.approx(-1 - 5 * (EQUAL_DRIFT - 0.06) / 0.1)
    assert runs.loc["b", ["at_id_gain", "at_drift"]].isna().all()
    assert list(runs.loc["a", ["id", "ood_avg", "drift"]]) == [9.0, -6.0, 0.16]
    assert not runs["collapsed"].any()


@pytest.mark.parametrize(
    ("at_id", "at_ood", "fallen"),
    [(-10.0, 0.0, True), (5.0, -10.0, True), (-9.9, -9.9, False), (20.0, 20.0, False)],
)
def test_a_run_collapses_in_or_out_of_distribution_at_its_last_step(at_id, at_ood, fallen):
    table = stops(("a", 0, 24, -30.0, -30.0, 0.5), ("a", 0, 200, at_id, at_ood, 0.6))
    assert list(gains_at_equal_movement(table, ["cell", "seed"])["collapsed"]) == [fallen]
