"""Bounds of tests in stages: against published ones, and against simulated Student tests."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import norm, t

from geosd.scores.stages import (
    nominal_stage_levels,
    obrien_fleming_like,
    pocock_like,
    stage_bounds,
    stage_decision_chance,
    stage_level_at,
)
from geosd.scores.statistics import GroupStatistics

FIFTHS = [0.2, 0.4, 0.6, 0.8, 1.0]


@pytest.mark.parametrize(
    ("spending", "expected"),
    [
        (obrien_fleming_like, [4.8769, 3.3569, 2.6803, 2.2898, 2.0310]),
        (pocock_like, [2.4380, 2.4268, 2.4101, 2.3966, 2.3859]),
    ],
)
def test_bounds_of_five_equal_stages_are_the_published_ones(spending, expected):
    """Of level .05 on two sides: Lan and DeMets' program, as R's ldbounds prints them."""
    assert stage_bounds(FIFTHS, 0.05, spending) == pytest.approx(expected, abs=2e-4)


@pytest.mark.parametrize("spending", [obrien_fleming_like, pocock_like])
def test_all_of_the_level_is_spent_at_the_end_and_one_stage_has_it_whole(spending):
    assert spending(1.0, 0.05) == pytest.approx(0.05)
    assert stage_bounds([1.0], 0.05, spending) == pytest.approx([norm.isf(0.025)])


@pytest.mark.parametrize("shares", [[0.5, 0.5, 1.0], [0.0, 1.0], [0.5, 0.9], [0.5, 1.2]])
def test_shares_that_do_not_ascend_to_one_are_refused(shares):
    with pytest.raises(ValueError, match="ascend from above 0 to 1.\nHint:"):
        stage_bounds(shares, 0.05, pocock_like)


def errors(stages, alpha, studies=100_000):
    """The share of simulated studies without an effect in which any stage rejects."""
    runs = np.random.default_rng(0).normal(size=(studies, stages[-1]))
    rejected = np.zeros(studies, dtype=bool)
    for number, level in zip(stages, nominal_stage_levels(stages, alpha), strict=True):
        seen = runs[:, :number]
        statistic = seen.mean(1) / (seen.std(1, ddof=1) / np.sqrt(number))
        rejected |= np.abs(statistic) > t.isf(level / 2, number - 1)
    return rejected.mean()


@pytest.mark.parametrize("stages", [(3, 6, 10), (3, 6), (4, 8, 12)])
@pytest.mark.parametrize("alpha", [0.05, 0.05 / 3, 0.05 / 24])
def test_students_tests_of_all_stages_together_keep_the_level_and_use_most_of_it(stages, alpha):
    spread = 4 * (alpha / 100_000) ** 0.5
    assert 0.8 * alpha - spread < errors(stages, alpha) < alpha + spread


def test_without_the_share_that_is_left_unspent_they_would_not():
    raw = [2 * norm.sf(z) for z in stage_bounds([0.3, 0.6, 1.0], 0.05, pocock_like)]
    kept = nominal_stage_levels((3, 6, 10), 0.05)
    assert all(level < whole for level, whole in zip(kept, raw, strict=True))
    assert errors((3, 6, 10), 0.05 / 0.85) > 0.053


def test_the_level_of_a_stage_grows_with_the_whole_level():
    level = stage_level_at((3, 6, 10), 1)
    assert level(0.01) < level(0.05) < 0.05


def test_the_chance_of_a_decision_is_that_of_studies_which_went_on():
    """Given six runs of known mean and deviation; the runs to come are drawn by the prediction."""
    seen, planned, level, end = GroupStatistics(1.0, 1.5, 6), 10, 0.05, 0.0
    generator = np.random.default_rng(1)
    shift = generator.standard_t(5, 200_000) * seen.sd * np.sqrt(1 / 6 - 1 / 10)
    half = t.isf(level / 2, 9) * seen.sd / np.sqrt(10)
    decided = np.abs(seen.mean + shift - end) > half
    found = stage_decision_chance(seen, planned, level, (end, np.inf))
    assert found == pytest.approx(decided.mean(), abs=0.005)
    assert np.isnan(
        stage_decision_chance(GroupStatistics(1.0, 0.0, 6), planned, level, (end, np.inf))
    )
    assert np.isnan(
        stage_decision_chance(GroupStatistics(1.0, 1.0, 10), planned, level, (end, np.inf))
    )
