"""How often a row has a wrong word, or a family of rows of a primary claim any, at the margin."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from geosd.claims.claim import Claim
from geosd.claims.estimate import Estimate
from geosd.claims.judging import ALPHA, JudgedClaim, _holm_levels
from geosd.claims.metrics import accuracy_metric
from geosd.scores.statistics import GroupStatistics

RUNS, STUDIES = 5, 600
UP = accuracy_metric("a") > accuracy_metric("b")
CLAIM = Claim("c", "", "", "", "main", [UP])


def row(draw: np.random.Generator, means: list[float], candidates: int = 1) -> JudgedClaim:
    """A row of comparisons with true means; their noise is half shared, as that of one baseline."""
    shared = draw.normal(size=RUNS)
    groups = [GroupStatistics.of(mean + draw.normal(size=RUNS) - shared) for mean in means]
    return JudgedClaim(
        CLAIM, "m", [Estimate(UP, [one], candidates, RUNS, RUNS, np.nan) for one in groups]
    )


def rate(words: list[bool]) -> float:
    return sum(words) / len(words)


@pytest.mark.parametrize("means", [[0.0], [0.0, 50.0, 50.0], [0.0, 0.0, 0.0]])
def test_a_row_at_its_margin_has_a_wrong_word_no_more_often_than_its_level(means):
    """A comparison at 0 is just false for `agrees`, and just true for `opposite`."""
    draw = np.random.default_rng(11)
    found = [row(draw, means).finding().word for _ in range(STUDIES)]
    # Each direction has half of the level; three standard errors of 600 studies.
    assert rate([word == "agrees" for word in found]) < ALPHA / 2 + 0.019
    assert rate([word == "opposite" for word in found]) < ALPHA / 2 + 0.019
    assert rate([word != "too small to tell" for word in found]) > ALPHA / 10


def test_the_strongest_of_several_keeps_its_level_and_would_not_without_its_candidates():
    """GeoSD equals all of eight baselines; the one with the best mean is compared."""
    draw = np.random.default_rng(12)
    strongest = []
    for _ in range(STUDIES):
        groups = [GroupStatistics.of(draw.normal(size=RUNS)) for _ in range(8)]
        least = min(groups, key=lambda group: group.mean)
        strongest.append(JudgedClaim(CLAIM, "m", [Estimate(UP, [least], 8, RUNS, RUNS, np.nan)]))
    assert rate([one.finding().word == "opposite" for one in strongest]) < ALPHA / 2 + 0.019
    alone = [replace(r, estimates=[replace(r.estimates[0], candidates=1)]) for r in strongest]
    assert rate([one.finding().word == "opposite" for one in alone]) > ALPHA


def test_three_models_of_a_primary_claim_have_any_wrong_word_as_rarely_as_one_row():
    draw = np.random.default_rng(13)
    any_wrong, uncorrected = [], []
    for _ in range(STUDIES):
        rows = {i: row(draw, [0.0]) for i in range(3)}
        levels = _holm_levels(rows)
        words = [rows[i].finding(level).word for i, level in levels.items()]
        any_wrong.append(any(word != "too small to tell" for word in words))
        uncorrected.append(any(r.finding().word != "too small to tell" for r in rows.values()))
    assert 0.3 * ALPHA < rate(any_wrong) < ALPHA + 0.027
    assert rate(uncorrected) > 2 * ALPHA
