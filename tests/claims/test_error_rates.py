"""How often a family of rows has any wrong verdict, of either kind, if every null is at its edge.

Rows share a baseline and claims have one to three comparisons, so neither are independent.
"""

from __future__ import annotations

import math
from functools import cache

import numpy as np
import pytest
from scipy import stats

from geosd.claims.claim import Claim
from geosd.claims.comparing import ComparisonTest
from geosd.claims.metrics import accuracy
from geosd.claims.verdicts import ALPHA, Row, decide

RUNS = 4
PARTS = (1, 2, 3, 1, 2, 3)
"""Comparisons of each claim; those of the first three rows are false, of the others true."""
UP = accuracy("a") > accuracy("b")
CLAIM = Claim("c", "", "", "", "main", [UP])


@cache
def verdicts(rows_corrected: int, share: float, families: int = 1500) -> np.ndarray:
    """Verdicts of families x rows; `share` is how much of the noise is the shared baseline's.

    A false claim has one comparison at its margin, where it is just false, and others far beyond
    it; a true claim has all of its comparisons at the margin, just true.
    """
    draw = np.random.default_rng(11)
    baseline = math.sqrt(share) * draw.normal(size=(families, 1, 1, RUNS))
    own = math.sqrt(1 - share) * draw.normal(size=(families, len(PARTS), max(PARTS), RUNS))
    effects = own - baseline
    effects[:, : len(PARTS) // 2, 1:] += 50
    tests = stats.ttest_1samp(effects, 0, axis=-1, alternative="greater")
    found = np.empty((families, len(PARTS)), dtype=object)
    for family, of_rows in enumerate(tests.pvalue):
        for row, (m, p_values) in enumerate(zip(PARTS, of_rows, strict=True)):
            parts = [_tested(p) for p in p_values[:m]]
            claim_row = Row(CLAIM, "model", parts, [""] * m)
            found[family, row] = decide(claim_row, rows_corrected).verdict
    return found


def _tested(p: float) -> ComparisonTest:
    return ComparisonTest(
        UP,
        *(0.0, -1.0, 1.0, p, 1 - p, 1.0, RUNS - 1.0),
        *(math.inf, math.inf, math.nan, RUNS, RUNS, RUNS, math.nan),
    )


def wrong(found: np.ndarray) -> np.ndarray:
    """Whether a family has a wrong verdict, confirming or refuting."""
    half = len(PARTS) // 2
    return np.any(found[:, :half] == "reproduced", axis=1) | np.any(
        found[:, half:] == "not reproduced", axis=1
    )


@pytest.mark.slow
@pytest.mark.parametrize("share", [0.0, 0.9])
def test_any_wrong_verdict_of_a_family_is_as_rare_as_its_level(share):
    families = wrong(verdicts(len(PARTS), share))
    # Three standard errors; dependence leaves less than the whole level.
    slack = 3 * math.sqrt(ALPHA * (1 - ALPHA) / len(families))
    assert 0.2 * ALPHA < families.mean() < ALPHA + slack


def test_without_the_correction_it_would_not_be():
    assert wrong(verdicts(1, 0.0, 200)).mean() > 3 * ALPHA


def test_each_kind_of_wrong_verdict_occurs():
    found, half = verdicts(len(PARTS), 0.0), len(PARTS) // 2
    assert (found[:, :half] == "reproduced").any()
    assert (found[:, half:] == "not reproduced").any()
    assert not (found[:, :half] == "not reproduced").all()
