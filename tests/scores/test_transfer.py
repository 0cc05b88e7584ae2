"""Crossings against lines whose zeros are known, differences against SciPy and statsmodels."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from statsmodels.stats.multitest import multipletests

from geosd.scores.transfer import (
    paired_transfer_differences,
    transfer_crossing_interval,
    transfer_zero_crossing,
)

SETTINGS = [0.0, 0.25, 0.5, 0.75, 1.0]


@pytest.mark.parametrize(
    ("gains", "setting"),
    [
        ([3, 1, -1, -2, -3], 0.375),
        ([3, 0, -1, -2, -3], 0.25),
        ([3, -1, 2, -2, -3], 0.1875),  # of two crossings the smaller setting
        ([1, 2, 3, 4, 5], 1.0),
        ([-1, -2, -3, -4, -5], 0.0),
        ([0, 1, 2, 3, 4], 0.0),
        ([-1, 1, -1, -1, -1], 0.375),  # the rise from below is no crossing
    ],
)
def test_the_crossing_is_where_the_gain_falls_to_zero(gains, setting):
    assert transfer_zero_crossing(SETTINGS, np.array(gains, dtype=float)) == pytest.approx(setting)


def test_the_interval_of_a_crossing_is_that_of_the_mean_of_lines():
    # A line c - x crosses 0 at c, and a mean of lines at the mean of their c.
    at = np.array([0.4, 0.45, 0.5, 0.5, 0.55, 0.6])
    gains = at[:, None] - np.array(SETTINGS)
    crossing, low, high = transfer_crossing_interval(SETTINGS, gains)
    assert crossing == pytest.approx(at.mean())
    draws = np.random.default_rng(7).choice(at, (100_000, 6)).mean(axis=1)
    np.testing.assert_allclose([low, high], np.quantile(draws, [0.025, 0.975]), atol=3e-3)


def test_differences_are_the_paired_t_tests_with_holms_correction():
    draws, shifts = np.random.default_rng(3), {"fwdkl": 0.0, "geosd": 2.0, "jsd": 0.1}
    shared = draws.normal(0, 5, 6)
    values = {name: shared + shift + draws.normal(0, 1, 6) for name, shift in shifts.items()}
    rows = [
        {"variant": name, "seed": seed, "gain": gain}
        for name, of_variant in values.items()
        for seed, gain in enumerate(of_variant)
    ]
    found = paired_transfer_differences(pd.DataFrame(rows), "fwdkl")
    tests = [stats.ttest_rel(values[name], values["fwdkl"]) for name in ("geosd", "jsd")]
    intervals = [test.confidence_interval(0.95) for test in tests]
    np.testing.assert_allclose(
        found["p"], multipletests([t.pvalue for t in tests], method="holm")[1]
    )
    np.testing.assert_allclose(found["low"], [i.low for i in intervals])
    np.testing.assert_allclose(found["high"], [i.high for i in intervals])
