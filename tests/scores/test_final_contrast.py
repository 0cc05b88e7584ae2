"""The predictive interval of a study's final means holds at its nominal rate."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from geosd.scores.statistics import GroupStatistics, final_contrast_test

STUDIES = 1500


def coverage(groups_of, planned):
    """The share of simulated studies whose final sum of means lies in the interval."""
    rng, held = np.random.default_rng(0), 0
    for _ in range(STUDIES):
        runs = [sign * rng.normal(mean, sd, planned) for sign, mean, sd, _ in groups_of]
        seen = [GroupStatistics.of(x[:n]) for x, (*_, n) in zip(runs, groups_of, strict=True)]
        interval = final_contrast_test(seen, planned)
        held += interval.low <= sum(x.mean() for x in runs) <= interval.high
    return held / STUDIES


@pytest.mark.parametrize("seen", [2, 9])
def test_the_final_mean_lies_in_the_interval_in_95_of_100_studies(seen):
    # Three standard errors of 1500 studies are 1.7 percent.
    assert coverage([(1, 60.0, 2.0, seen)], planned=10) == pytest.approx(0.95, abs=0.017)


@pytest.mark.parametrize(("seen", "base"), [(4, 10), (3, 6)])
def test_so_does_the_final_change_from_a_base_that_varies_otherwise(seen, base):
    held = coverage([(1, 60.0, 2.0, seen), (-1, 50.0, 0.7, base)], planned=10)
    assert held == pytest.approx(0.95, abs=0.02)


def test_by_hand():
    # Three of four runs: variance 1/3 - 1/4 of theirs, Student's t of two degrees of freedom.
    final = final_contrast_test([GroupStatistics(10.0, 2.0, 3)], 4)
    half = stats.t.ppf(0.975, 2) * 2.0 * math.sqrt(1 / 12)
    assert (final.low, final.high) == pytest.approx((10 - half, 10 + half))
    # All runs there: a point, beside a group that lacks some a shift.
    done = final_contrast_test([GroupStatistics(10.0, 2.0, 4)], 4)
    assert (done.low, done.difference, done.high) == (10, 10, 10)
    both = final_contrast_test([GroupStatistics(10.0, 2.0, 3), GroupStatistics(-4.0, 9.0, 4)], 4)
    assert (both.low, both.high) == pytest.approx((final.low - 4, final.high - 4))
    assert math.isnan(final_contrast_test([GroupStatistics(10.0, math.nan, 1)], 4).low)
    with pytest.raises(ValueError, match="5 runs are more than the 4 planned"):
        final_contrast_test([GroupStatistics(10.0, 2.0, 5)], 4)
