"""Welch, Holm, intervals and Hedges' g against scipy, hand values, and a seeded simulation."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from geosd.scores.statistics import (
    GroupStatistics,
    hedges_g,
    holm,
    replicate_means,
    welch,
)

A, B = GroupStatistics(60.5, 0.5, 10), GroupStatistics(54.8, 1.1, 10)


def test_welch_agrees_with_scipy_from_summaries():
    for a, b in [
        (A, B),
        (GroupStatistics(3, 1.5, 3), GroupStatistics(2.5, 0.2, 7)),
        (GroupStatistics(1, 0, 4), GroupStatistics(2, 1, 5)),
    ]:
        with np.errstate(all="ignore"):
            scipy_test = stats.ttest_ind_from_stats(
                a.mean, a.sd, a.n, b.mean, b.sd, b.n, equal_var=False, alternative="greater"
            )
        assert welch(a, b).p == pytest.approx(scipy_test.pvalue, rel=1e-9)


def test_welch_agrees_with_scipy_from_samples_with_its_interval():
    draw = np.random.default_rng(1)
    x, y = draw.normal(2, 1, 8), draw.normal(1, 3, 5)
    found = welch(GroupStatistics.of(x), GroupStatistics.of(y))
    scipy_test = stats.ttest_ind(x, y, equal_var=False, alternative="greater")
    interval = stats.ttest_ind(x, y, equal_var=False).confidence_interval(0.95)
    assert found.p == pytest.approx(scipy_test.pvalue)
    assert found.df == pytest.approx(scipy_test.df)
    assert (found.low, found.high) == pytest.approx((interval.low, interval.high))


def test_welch_by_hand():
    # Equal sd 2 and n 4: se = sqrt(4/4 + 4/4) = sqrt 2, df = 6, t = 3/sqrt 2 = 2.1213.
    # The t distribution with 6 degrees has its 97.5 % point at 2.4469.
    test = welch(GroupStatistics(13, 2, 4), GroupStatistics(10, 2, 4))
    assert test.df == pytest.approx(6)
    assert test.difference == 3
    assert test.high - 3 == pytest.approx(2.4469 * math.sqrt(2), abs=1e-4)
    assert 0.025 < test.p < 0.05  # between the 95 % (1.943) and the 97.5 % point


def test_the_two_directions_share_one_unit_of_probability():
    assert welch(A, B).p + welch(B, A).p == pytest.approx(1)


def test_what_has_no_spread_has_no_p():
    for a, b in [
        (GroupStatistics.of([1.0]), B),
        (A, GroupStatistics.of([2.0])),
        (GroupStatistics(1, 0, 3), GroupStatistics(2, 0, 3)),
    ]:
        test = welch(a, b)
        assert test.difference == a.mean - b.mean
        assert all(map(math.isnan, (test.p, test.low, test.high, test.g, test.df)))


def test_one_group_without_variance_still_has_a_test():
    test = welch(GroupStatistics(3, 0, 3), GroupStatistics(1, 1, 3))
    assert test.df == pytest.approx(2)
    assert 0 < test.p < 0.05


def test_hedges_g_by_hand():
    # d = 5.7 / sqrt((.25 + 1.21)/2) = 6.6714; J(18) = 0.957652 (1 - 3/71 = 0.957746 roughly).
    assert hedges_g(A, B) == pytest.approx(6.6714 * 0.957652, rel=1e-4)
    assert hedges_g(A, B) == pytest.approx(6.6714 * (1 - 3 / (4 * 18 - 1)), rel=2e-4)


def test_hedges_g_pools_by_degrees_of_freedom():
    a, b = GroupStatistics(1, 1, 3), GroupStatistics(0, 2, 11)
    pooled = math.sqrt((2 * 1 + 10 * 4) / 12)
    correction = math.gamma(6) / (math.sqrt(6) * math.gamma(5.5))
    assert hedges_g(a, b) == pytest.approx(correction / pooled)


def test_holm_by_hand_and_in_the_given_order():
    # Sorted .01 .02 .03 .04: times 4, 3, 2, 1 is .04 .06 .06 .04, then made monotone.
    assert holm([0.03, 0.01, 0.04, 0.02]) == pytest.approx([0.06, 0.04, 0.06, 0.06])
    assert holm([0.9, 0.8]) == pytest.approx([1.0, 1.0])
    assert holm([]) == []


def test_holm_passes_over_what_was_not_tested():
    adjusted = holm([0.01, math.nan, 0.02])
    assert adjusted[0] == pytest.approx(0.02) and math.isnan(adjusted[1])
    assert adjusted[2] == pytest.approx(0.02)
    assert math.isnan(holm([math.nan])[0])


def test_a_group_uses_the_sample_deviation_and_refuses_what_is_not_finite():
    assert GroupStatistics.of([1, 2, 3]) == GroupStatistics(2, 1, 3)
    assert math.isnan(GroupStatistics.of([1]).sd)
    for bad in ([], [1, math.nan]):
        with pytest.raises(ValueError, match="(?s)finite.*Hint:"):
            GroupStatistics.of(bad)


def test_the_interval_covers_the_truth_as_often_as_it_says():
    draw = np.random.default_rng(7)
    covered, trials = 0, 2000
    for _ in range(trials):
        a, b = draw.normal(1.0, 1.0, 3), draw.normal(0.0, 3.0, 10)
        test = welch(GroupStatistics.of(a), GroupStatistics.of(b))
        covered += test.low <= 1.0 <= test.high
    # Two thousand draws: standard error .5 points.
    assert covered / trials == pytest.approx(0.95, abs=0.015)


def test_draws_count_once_there_are_two():
    runs = pd.Series([1.0, 5.0, 3.0, 9.0], index=[0, 1, 2, 3])
    draws = pd.Series([0, 1, 0, 1], index=[0, 1, 2, 3])
    assert replicate_means(runs, draws).tolist() == [2.0, 7.0]
    assert replicate_means(runs, 0 * draws).tolist() == runs.tolist()
