"""pass@k against brute force, exact binomials, and the case k = n of the paper."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations
from math import comb

import pytest

from geosd.scores.avg_and_pass_at_k import mean_pass_at_k, pass_at_k
from geosd.scores.samples_by_problem import ProblemCounts


@pytest.mark.parametrize("n", [1, 2, 5, 7])
def test_pass_at_k_is_the_share_of_subsets_with_a_correct_sample(n):
    for c in range(n + 1):
        verdicts = [True] * c + [False] * (n - c)
        for k in range(1, n + 1):
            subsets = list(combinations(verdicts, k))
            assert pass_at_k(n, c, k) == pytest.approx(sum(map(any, subsets)) / len(subsets))


def test_pass_at_k_agrees_with_exact_binomials_where_floats_would_overflow():
    n = 5000
    for c, k in [(1, 1), (3, 700), (40, 64), (2500, 2), (1, 4999)]:
        exact = 1 - Fraction(comb(n - c, k), comb(n, k))
        assert pass_at_k(n, c, k) == pytest.approx(float(exact), rel=1e-10)


def test_pass_at_n_is_any_correct():
    assert [pass_at_k(16, c, 16) for c in (0, 1, 16)] == [0.0, 1.0, 1.0]


def test_pass_at_1_is_the_accuracy():
    assert pass_at_k(16, 5, 1) == pytest.approx(5 / 16)


def test_k_beyond_the_samples_is_refused_with_the_remedy():
    with pytest.raises(ValueError, match="(?s)pass@32 from 16 samples.*Hint: draw more"):
        pass_at_k(16, 3, 32)


def test_impossible_counts_are_refused():
    with pytest.raises(ValueError, match="17 correct of 16"):
        pass_at_k(16, 17, 1)


def test_mean_pass_at_k_averages_over_problems():
    counts = [ProblemCounts("id", "a", 4, 0), ProblemCounts("id", "b", 4, 1)]
    assert mean_pass_at_k(counts, 2) == pytest.approx(0.25)
