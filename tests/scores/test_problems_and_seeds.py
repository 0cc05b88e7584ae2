"""Intervals over problems and seeds: exact cases, and how often they hold the truth."""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
import pytest

from geosd.scores import problems_and_seeds
from geosd.scores.problems_and_seeds import (
    by_seed,
    gaps_by_problem_and_seed,
    over_problems,
    over_problems_and_seeds,
    shares_by_problem_and_seed,
)
from geosd.scores.tidy import COLUMNS


def ends(interval):
    return interval.difference, interval.low, interval.high


def test_the_small_case_has_the_quantiles_of_all_its_resamples():
    """Two seeds, two problems and a second benchmark of one: 4 x 4 equally likely resamples."""
    first = np.array([[0.0, 0.25], [0.5, 1.0]])
    second = np.array([[0.1], [0.3]])
    means = []
    for seeds in itertools.product(range(2), repeat=2):
        for problems in itertools.product(range(2), repeat=2):
            of_first = first[np.ix_(seeds, problems)].mean()
            of_second = second[list(seeds)].mean()
            means.append(100 * (of_first + of_second) / 2)
    for confidence in (0.95, 0.8):
        tail = (1 - confidence) / 2
        # Of a distribution of sixteenths, at a place that no sampling error moves to a neighbour.
        expected = np.quantile(means, [tail, 1 - tail], method="inverted_cdf")
        found = over_problems_and_seeds([first, second], confidence)
        assert ends(found) == pytest.approx((np.mean(means), *expected))


def test_a_resample_has_owens_variance(monkeypatch):
    """Of a balanced table: rows' and columns' parts, and one of what they do not explain."""
    monkeypatch.setattr(problems_and_seeds, "RESAMPLES", 200_000)
    table = np.random.default_rng(1).normal(size=(3, 5))
    centred = table - table.mean()
    rows, columns = centred.mean(axis=1), centred.mean(axis=0)
    rest = centred - rows[:, None] - columns
    expected = (rows**2).mean() / 3 + (columns**2).mean() / 5 + (rest**2).mean() / 15
    caught = {}
    monkeypatch.setattr(
        problems_and_seeds, "_interval", lambda gaps, drawn, level: caught.update(drawn=drawn)
    )
    over_problems_and_seeds([table])
    assert caught["drawn"].mean() == pytest.approx(table.mean(), abs=0.01)
    assert caught["drawn"].var() == pytest.approx(expected, rel=0.02)


def test_one_seed_leaves_problems_alone_and_equal_gaps_no_spread():
    table = np.random.default_rng(2).normal(size=(1, 40))
    both, alone = over_problems_and_seeds([table]), over_problems([table])
    assert ends(both) == pytest.approx(ends(alone), abs=2.0)
    alike = [np.full((3, 4), 0.25), np.full((3, 6), 0.5)]
    assert ends(over_problems_and_seeds(alike)) == pytest.approx((37.5, 37.5, 37.5))
    assert ends(over_problems(alike)) == pytest.approx((37.5, 37.5, 37.5))


def test_seeds_that_agree_on_each_problem_add_nothing():
    problems = np.random.default_rng(3).normal(size=30)
    both = over_problems_and_seeds([np.tile(problems, (4, 1))])
    alone = over_problems([np.tile(problems, (4, 1))])
    assert ends(both) == pytest.approx(ends(alone), abs=1.5)


def test_the_same_seed_gives_the_same_ends_and_another_one_others():
    table = np.random.default_rng(4).normal(size=(3, 20))
    assert over_problems_and_seeds([table]) == over_problems_and_seeds([table])
    assert over_problems_and_seeds([table]) != over_problems_and_seeds([table], seed=1)


def coverage(monkeypatch, seeds, of_seeds, interval):
    """How often an interval of 95 % holds a true difference of 0 in 300 made-up studies.

    Three benchmarks of 24 problems; a problem deviates by .2, a run on a problem by .3.
    """
    monkeypatch.setattr(problems_and_seeds, "RESAMPLES", 400)
    draw, held = np.random.default_rng(5), 0
    for trial in range(300):
        runs = draw.normal(0, of_seeds, (seeds, 1))
        gaps = [runs + draw.normal(0, 0.2, 24) + draw.normal(0, 0.3, (seeds, 24)) for _ in range(3)]
        found = interval(gaps, seed=trial)
        held += found.low <= 0 <= found.high
    return held / 300


@pytest.mark.slow
def test_an_interval_over_problems_and_seeds_holds_the_truth_as_often_as_is_said(monkeypatch):
    """The page says: with few seeds that differ much, less often than its confidence."""
    little, much = 0.05, 0.2
    for seeds, spread, least, most in (
        (4, 0.0, 0.95, 1.0),
        (4, little, 0.91, 0.99),
        (2, much, 0.60, 0.74),
        (4, much, 0.79, 0.91),
        (16, much, 0.89, 0.97),
    ):
        found = coverage(monkeypatch, seeds, spread, over_problems_and_seeds)
        assert least <= found <= most, (seeds, spread, found)


def test_an_interval_over_problems_alone_says_nothing_of_other_seeds(monkeypatch):
    assert coverage(monkeypatch, 4, 0.0, over_problems) == pytest.approx(0.95, abs=0.04)
    assert coverage(monkeypatch, 4, 0.2, over_problems) < 0.6


def rows_of(variant, seeds, problems, share):
    return [
        ("m", variant, seed, 0, benchmark, f"{benchmark}-{n}", 4, share(benchmark, seed, n))
        for seed in seeds
        for benchmark in ("id", "easy", "long")
        for n in range(problems)
    ]


def test_tables_are_seeds_by_problems_whatever_the_order_of_the_rows():
    rows = rows_of("a", (0, 1), 3, lambda of, seed, n: (of == "easy") / 2 + seed / 4 + n / 8)
    table = pd.DataFrame(rows, columns=list(COLUMNS["shares"]))
    mixed = table.sample(frac=1, random_state=0)
    outside = shares_by_problem_and_seed(mixed, "m", "a", outside=True)
    assert list(outside) == ["easy", "long"]
    assert outside["easy"].to_numpy().tolist() == [[0.5, 0.625, 0.75], [0.75, 0.875, 1.0]]
    assert list(shares_by_problem_and_seed(mixed, "m", "a", outside=False)) == ["id"]


def test_other_problems_or_seeds_are_refused_and_seeds_are_told_apart():
    def shares(seeds, problems, value):
        rows = rows_of("a", seeds, problems, lambda of, seed, n: value + seed / 4)
        table = pd.DataFrame(rows, columns=list(COLUMNS["shares"]))
        return shares_by_problem_and_seed(table, "m", "a", outside=True)

    both = shares((0, 1), 3, 0.5)
    assert by_seed(gaps_by_problem_and_seed(both, both)) == [0.0, 0.0]
    low = {name: of.mul([0, 1], axis=0) for name, of in both.items()}
    assert by_seed(gaps_by_problem_and_seed(both, low)) == pytest.approx([50.0, 0.0])
    for other in (shares((0, 1), 2, 0.5), shares((0, 2), 3, 0.5), {"easy": both["easy"]}):
        with pytest.raises(ValueError, match="other problems or seeds on .*\nHint: "):
            gaps_by_problem_and_seed(both, other)
    with pytest.raises(ValueError, match="2, 3 seeds.*\nHint: "):
        over_problems_and_seeds([np.zeros((2, 4)), np.zeros((3, 4))])
