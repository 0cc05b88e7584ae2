"""Effects of a factorial are taken within a draw, and their means over draws."""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
import pytest
import torch
from scipy import stats

from geosd.geometry import fisher_rao_squared, forward_kl, hellinger, jsd, reverse_kl
from geosd.scores.factorial_effects import (
    CURVATURE,
    FactorialChange,
    effect_over_draws,
    factorial_curvature_ratio,
    interaction,
    main_effect,
)

FACTORS = ("pull", "ratio", "rule")
LEVELS = {"pull": ["a", "b", "c"], "ratio": [0.0, 8.0], "rule": ["k", "w"]}
PULL, RATIO = FactorialChange("pull", "b", "a"), FactorialChange("ratio", 8.0, 0.0)


def table(value, draws=4):
    """Runs of all cells on some draws, whose value is a function of cell and draw."""
    rows = [
        (draw, *cell, value(draw, *cell))
        for draw in range(draws)
        for cell in itertools.product(*LEVELS.values())
    ]
    return pd.DataFrame(rows, columns=["draw", *FACTORS, "gain"])


def test_parts_that_add_up_have_their_effects_and_no_interaction():
    by_pull = {"a": 0.0, "b": -2.0, "c": 5.0}
    runs = table(lambda d, pull, ratio, rule: 10 * d + by_pull[pull] + ratio / 8 + (rule == "k"))
    assert main_effect(runs, FACTORS, PULL, "gain").tolist() == [-2.0] * 4
    assert (
        main_effect(runs, FACTORS, FactorialChange("pull", "c", "b"), "gain").tolist() == [7.0] * 4
    )
    assert main_effect(runs, FACTORS, RATIO, "gain").tolist() == [1.0] * 4
    assert (
        main_effect(runs, FACTORS, FactorialChange("rule", "k", "w"), "gain").tolist() == [1.0] * 4
    )
    assert interaction(runs, FACTORS, PULL, RATIO, "gain").tolist() == [0.0] * 4


def test_an_interaction_is_what_the_second_change_does_to_the_first():
    runs = table(lambda d, pull, ratio, rule: d + 3.0 * (pull == "b") * (ratio == 8.0))
    assert interaction(runs, FACTORS, PULL, RATIO, "gain").tolist() == [3.0] * 4
    assert main_effect(runs, FACTORS, PULL, "gain").tolist() == [1.5] * 4


def test_effects_of_a_full_factorial_are_the_coefficients_of_least_squares():
    draw = np.random.default_rng(1)
    noise = {cell: draw.normal() for cell in itertools.product(range(4), *LEVELS.values())}
    runs = table(lambda *cell: noise[cell])
    two = runs[runs["pull"].isin(["a", "b"])]
    signs = {
        "pull": two["pull"].map({"a": -0.5, "b": 0.5}),
        "ratio": two["ratio"].map({0.0: -0.5, 8.0: 0.5}),
        "rule": two["rule"].map({"w": -0.5, "k": 0.5}),
    }
    columns = [np.ones(len(two)), *signs.values(), signs["pull"] * signs["ratio"]]
    fit = np.linalg.lstsq(np.stack(columns, axis=1), two["gain"].to_numpy(), rcond=None)[0]
    assert main_effect(two, FACTORS, PULL, "gain").mean() == pytest.approx(fit[1])
    assert main_effect(two, FACTORS, RATIO, "gain").mean() == pytest.approx(fit[2])
    assert interaction(two, FACTORS, PULL, RATIO, "gain").mean() == pytest.approx(fit[4])


def test_a_cell_without_a_value_takes_its_pair_along():
    runs = table(lambda d, pull, ratio, rule: 4.0 * (pull == "b") * (ratio == 8.0), draws=2)
    lost = (runs["draw"] == 0) & (runs["pull"] == "a") & (runs["ratio"] == 8.0)
    runs.loc[lost, "gain"] = np.nan
    assert main_effect(runs, FACTORS, PULL, "gain").to_dict() == {0: 0.0, 1: 2.0}
    assert interaction(runs, FACTORS, PULL, RATIO, "gain").to_dict() == {1: 4.0}


def test_the_unit_is_the_draw():
    values = pd.Series([1.0, 3.0, 2.5, -0.5])
    test, p = effect_over_draws(values)
    low, high = stats.ttest_1samp(values, 0).confidence_interval(0.95)
    assert (test.difference, test.low, test.high) == pytest.approx((values.mean(), low, high))
    assert p == pytest.approx(stats.ttest_1samp(values, 0).pvalue)
    assert effect_over_draws(values[:0]) is None
    alone, p = effect_over_draws(values[:1])
    assert alone.difference == 1.0 and np.isnan([alone.low, alone.high, p]).all()


@pytest.mark.parametrize(
    ("name", "function"),
    [("hellinger", hellinger), ("fwdkl", forward_kl), ("revkl", reverse_kl), ("jsd", jsd)],
)
def test_the_curvature_of_each_divergence_is_that_of_its_loss_near_agreement(name, function):
    p = torch.tensor([0.5, 0.3, 0.15, 0.05], dtype=torch.float64)
    step = 1e-4 * torch.tensor([0.3, -0.5, 0.1, 0.1], dtype=torch.float64)
    moved, q = (step**2 / p).sum(), p + step
    options = {"beta": 0.5} if name == "jsd" else {}
    divergence = function(q.log(), p.log(), **options)
    assert float(divergence / moved) == pytest.approx(CURVATURE[name], rel=1e-3)
    assert float(fisher_rao_squared(q.log(), p.log()) / moved) == pytest.approx(1, rel=1e-3)
    assert factorial_curvature_ratio(name, 1.0) == 1 / CURVATURE[name]
