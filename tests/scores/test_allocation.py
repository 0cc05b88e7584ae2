"""Samples by benchmark: against every other allocation of the same cost, and simulated samples."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from geosd.scores.allocation import (
    FEWEST,
    AllocatedBenchmark,
    neyman,
    sampling_variance,
    variance_for_allocation,
)
from geosd.scores.avg_and_pass_at_k import avg_at_k, mean_pass_at_k
from geosd.scores.samples_by_problem import ProblemCounts

THREE = {
    "hard": AllocatedBenchmark(30, 0.15),
    "middle": AllocatedBenchmark(60, 0.2),
    "easy": AllocatedBenchmark(200, 0.05),
}


def test_no_other_allocation_of_the_same_cost_has_less_variance():
    responses = 4000
    found = neyman(THREE, responses)
    cost = sum(one.problems * found[name] for name, one in THREE.items())
    assert responses - 300 < cost <= responses
    least = sampling_variance(THREE, found)
    for hard, middle, easy in itertools.product(range(4, 130), range(4, 66), range(4, 20)):
        if 30 * hard + 60 * middle + 200 * easy <= cost:
            other = {"hard": hard, "middle": middle, "easy": easy}
            assert sampling_variance(THREE, other) >= 0.98 * least, other  # whole samples


def test_no_benchmark_has_fewer_than_the_fewest():
    tight = neyman(THREE, FEWEST * 290 + 100)
    assert min(tight.values()) == FEWEST
    with pytest.raises(ValueError, match="1000 responses are fewer than 4.*\nHint:"):
        neyman(THREE, 1000)


def test_the_variance_is_that_of_simulated_samples():
    generator = np.random.default_rng(0)
    chances = {"a": generator.beta(1, 3, 30), "b": generator.beta(4, 1, 50)}
    samples = {"a": 6, "b": 3}
    benchmarks = {
        name: AllocatedBenchmark(len(p), float(np.mean(p * (1 - p)))) for name, p in chances.items()
    }
    means = [
        100 * (generator.binomial(samples[name], p, (40_000, len(p))) / samples[name]).mean(1)
        for name, p in chances.items()
    ]
    found = sampling_variance(benchmarks, samples)
    assert found == pytest.approx(np.mean(means, axis=0).var(), rel=0.03)


def test_the_variance_within_problems_is_read_off_pass_at_2():
    counts = [ProblemCounts("a", str(i), 5, c) for i, c in enumerate((0, 1, 3, 5, 2))]
    unbiased = np.mean([c / 5 - c * (c - 1) / (5 * 4) for c in (0, 1, 3, 5, 2)])  # E p - E p^2
    assert variance_for_allocation(avg_at_k(counts), mean_pass_at_k(counts, 2)) == pytest.approx(
        unbiased
    )
