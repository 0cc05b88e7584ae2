"""The one-standard-error rule against cases worked by hand, and against scipy."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from geosd.scores.rate_selection import (
    best_common_rate,
    candidates_clear_of_collapse,
    collapsed_runs_in_selection,
    rates_around,
    select_candidate,
    selection_behind_best,
)
from geosd.scores.tidy import COLUMNS

RATES = {"small": 1e-6, "middle": 1e-5, "large": 1e-4}


def scores(model="m", base=0.0, **values) -> pd.DataFrame:
    """avg@8 of each candidate by seed on the validation problems, and decoys in other rows.

    pi_0 has `base`: with 0 no run can collapse.
    """
    seeds = max((len(by_seed) for by_seed in values.values()), default=0)
    values = {"pi_0": [base] * seeds, **values}
    rows = [
        (model, name, seed, 0, benchmark, "ID", metric, 8, value)
        for name, by_seed in values.items()
        for seed, avg in enumerate(by_seed)
        for benchmark, metric, value in (
            ("select_validation", "avg@k", avg),
            ("select_validation", "pass@k", 100 - avg),
            ("id", "avg@k", 100 - avg),
        )
    ]
    return pd.DataFrame(rows, columns=list(COLUMNS["scores"]))


def selected(*values, rates=RATES) -> str:
    return select_candidate(scores(**dict(zip(rates, values, strict=True))), "m", rates)


@pytest.mark.parametrize(
    ("small", "middle", "large", "chosen"),
    [
        # Differences to the best (1, 2, 3): mean 2, sd 1, error 1/sqrt 3 = .58: out.
        ((47, 47, 47), (48, 49, 50), (40, 40, 40), "middle"),
        # (-1, 2, 2): mean 1, sd sqrt 3, error 1: at one standard error, which is within.
        ((51, 48, 48), (50, 50, 50), (40, 40, 40), "small"),
        # (-1, 2, 2.01): mean 1.003, sd 1.735, error 1.0017: just out.
        ((51, 48, 47.99), (50, 50, 50), (40, 40, 40), "middle"),
        # The best, large, swings; middle is within its error, small is not:
        # (50, 45, -35): mean 20, sd 47.7, error 27.5; (42, 40, 35): mean 39, error 2.1.
        ((58, 55, 25), (50, 50, 95), (100, 95, 60), "middle"),
        # All the same: no difference is more than no error.
        ((50, 50, 50), (50, 50, 50), (50, 50, 50), "small"),
        # A larger rate within the error of a smaller best is not taken.
        ((50, 50, 50), (51, 49, 49), (10, 10, 10), "small"),
        # What all seeds share cancels: every difference is 1, though accuracies spread by 60.
        ((19, 49, 79), (20, 50, 80), (0, 0, 0), "middle"),
    ],
)
def test_the_smallest_rate_within_one_standard_error_of_the_best(small, middle, large, chosen):
    assert selected(small, middle, large) == chosen


def test_with_one_seed_the_best_is_taken_and_of_equals_the_smallest():
    assert selected([49.9], [50.0], [50.0]) == "middle"


def test_the_order_of_the_grid_does_not_matter():
    backwards = {name: RATES[name] for name in reversed(RATES)}
    assert selected((51, 48, 48), (50, 50, 50), (40, 40, 40), rates=backwards) == "middle"
    assert selected([50], [50], [40], rates=backwards) == "middle"


def test_distance_and_error_are_those_of_a_paired_test():
    draw = np.random.default_rng(3)
    values = {name: draw.normal(50 + 3 * i, 4, 6) for i, name in enumerate(RATES)}
    found = selection_behind_best(scores(**values), "m", list(RATES))
    best = max(values, key=lambda name: values[name].mean())
    for name in RATES:
        assert found.loc[name, "accuracy"] == pytest.approx(values[name].mean())
        if name == best:
            assert tuple(found.loc[name, ["behind", "error"]]) == (0, 0)
            continue
        paired = stats.ttest_rel(values[best], values[name])
        ratio = found.loc[name, "behind"] / found.loc[name, "error"]
        assert ratio == pytest.approx(paired.statistic)


def test_each_model_is_judged_by_its_own_runs():
    both = pd.concat(
        [
            scores("a", small=[60, 60], middle=[50, 50], large=[10, 10]),
            scores("b", small=[40, 40], middle=[50, 50], large=[90, 90]),
        ]
    )
    assert [select_candidate(both, model, RATES) for model in "ab"] == ["small", "large"]


def test_a_run_ten_points_below_its_own_base_model_is_a_collapse():
    table = scores(pi_0=[50, 30], small=[40.1, 20.1], middle=[90, 20], large=[60, 30])
    assert collapsed_runs_in_selection(table).to_dict() == {
        "pi_0": 0,
        "small": 0,
        "middle": 1,
        "large": 0,
    }


@pytest.mark.parametrize(
    ("values", "clear", "chosen"),
    [
        # Half a decade above 3e-6 one run of 1e-5 is ten points below pi_0: 1e-6 is left.
        (((51, 51), (53, 53), (55, 40), (5, 5)), ["1e-6"], "1e-6"),
        # A decade is far enough; the best of what is clear is the measure, not the best of all.
        (((51, 51), (53, 53), (56, 56), (40, 70)), ["1e-6", "3e-6"], "3e-6"),
        # The same where the collapse is below.
        (((40, 50), (53, 53), (56, 56), (55, 55)), ["1e-5", "3e-5"], "1e-5"),
        (((51, 51), (40, 53), (56, 56), (40, 55)), [], None),
        (((51, 51), (53, 53), (56, 56), (60, 60)), ["1e-6", "3e-6", "1e-5", "3e-5"], "3e-5"),
    ],
)
def test_no_rate_within_half_a_decade_of_a_collapse_is_selected(values, clear, chosen):
    rates = {"1e-6": 1e-6, "3e-6": 3e-6, "1e-5": 1e-5, "3e-5": 3e-5}
    table = scores(base=50.0, **dict(zip(rates, values, strict=True)))
    assert candidates_clear_of_collapse(table, rates) == clear
    assert select_candidate(table, "m", rates) == chosen


def test_a_collapse_on_one_model_excludes_a_rate_on_all():
    firm = scores("a", base=50.0, small=[51, 51], middle=[60, 60], large=[70, 70])
    frail = scores("b", base=50.0, small=[51, 51], middle=[60, 60], large=[70, 40])
    both = pd.concat([firm, frail])
    assert select_candidate(firm, "a", RATES) == "large"
    assert [select_candidate(both, model, RATES) for model in "ab"] == ["middle", "middle"]


def test_without_its_base_model_no_run_is_judged():
    table = scores(small=[50, 50], middle=[50, 50], large=[50, 50])
    lacking = table[(table["variant"] != "pi_0") | (table["seed"] == 0)]
    with pytest.raises(ValueError, match="(?s)pi_0 was not validated: m with seed 1,.*\nHint: "):
        select_candidate(lacking, "m", RATES)


def test_rates_around_a_rate_are_found_where_half_a_decade_is_rounded():
    assert rates_around((1e-6, 2e-6, 3e-6, 1e-5), 1e-6, 0.5) == [1e-6, 2e-6, 3e-6]
    assert rates_around((1e-6, 3.3e-6, 1e-5), 1e-5, 0.5) == [3.3e-6, 1e-5]


@pytest.mark.parametrize(
    ("large", "message"),
    [((), "m: no validation of large with seeds 0, 1; judged are"), ([50], "validation of large")],
)
def test_a_candidate_that_lacks_a_run_is_named(large, message):
    table = scores(small=[50, 50], middle=[50, 50], large=large)
    with pytest.raises(ValueError, match=f"(?s){message}.*\nHint: let the workflow finish"):
        select_candidate(table, "m", RATES)


def grid(method, values):
    """A method's candidates and rates; and their accuracies, a row a rate and a column a seed."""
    rates = {f"{method}-{name}": rate for name, rate in RATES.items()}
    return rates, dict(zip(rates, values, strict=True))


def test_the_one_rate_is_best_on_average_over_methods_models_and_seeds():
    # Method a alone would take large (90), b alone small (60). Means: 50, 55, 47.5.
    a, of_a = grid("a", [(40, 40), (55, 65), (90, 90)])
    b, of_b = grid("b", [(60, 60), (50, 50), (0, 10)])
    table = scores(**of_a, **of_b)
    assert best_common_rate(table, {"a": a, "b": b}) == 1e-5
    # A second model on which all but large fail: 25, 27.5, 68.75 over both.
    second = scores("n", **grid("a", [(0, 0), (0, 0), (90, 90)])[1])
    second = pd.concat([second, scores("n", **grid("b", [(0, 0), (0, 0), (90, 90)])[1])])
    assert best_common_rate(pd.concat([table, second]), {"a": a, "b": b}) == 1e-4


def test_the_one_rate_is_one_that_every_method_was_trained_at():
    a, of_a = grid("a", [(40,), (55,), (90,)])
    b = {"b-small": 1e-6, "b-middle": 1e-5}
    table = scores(**of_a, **{"b-small": [50], "b-middle": [50]})
    assert best_common_rate(table, {"a": a, "b": b}) == 1e-5
    assert best_common_rate(table, {"a": a, "c": {"c": 7.0}}) is None
    assert best_common_rate(table, {}) is None  # a selection of ablations alone


def test_of_equal_rates_the_smaller_is_the_one_for_all():
    a, of_a = grid("a", [(40,), (50,), (50,)])
    assert best_common_rate(scores(**of_a), {"a": a}) == 1e-5
