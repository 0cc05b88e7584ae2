"""Endpoints of long trainings on hand-made paths."""

from __future__ import annotations

import math

import pytest

from geosd.scores.long_training import late_growth, long_training_fall, long_training_growth


@pytest.mark.parametrize(
    ("steps", "gains", "expected"),
    [
        ([100, 200], [-4.0, -16.0], 150.0),
        ([100, 200], [-10.0, -20.0], 100.0),
        ([100, 200], [-20.0, -1.0], 50.0),
        ([100, 200, 300], [-12.0, 5.0, -30.0], 100 * 10 / 12),
        ([100, 200], [3.0, -7.0], math.nan),
    ],
)
def test_a_fall_is_where_the_line_first_reaches_it(steps, gains, expected):
    assert long_training_fall(steps, gains, 10.0) == pytest.approx(expected, nan_ok=True)


def test_a_fall_of_nothing_is_refused():
    with pytest.raises(ValueError, match="more than 0"):
        long_training_fall([10], [-1.0], 0.0)


def test_growth_is_for_each_refresh_between_two_steps():
    assert long_training_growth((0.0, 0.2), (0, 200), 20) == pytest.approx(0.02)
    assert long_training_growth((0.2, 0.1), (200, 1000), 100) == pytest.approx(-0.0125)


def test_late_growth_is_a_share_of_the_whole():
    assert late_growth(0.3, 0.4) == pytest.approx(0.25)
    assert late_growth(0.4, 0.3) == pytest.approx(-1 / 3)
    assert math.isnan(late_growth(0.0, 0.0))
