"""Paths of methods over rates and over steps, and their comparison where they have moved alike."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from geosd.scores.movement_paths import compare_paths, path_gains_where_reached, paths_of_runs

COLUMNS = ["variant", "learning_rate", "steps", "seed", "draw", "id", "ood_avg", "drift"]


def runs(*rows):
    """Runs of the columns above; a draw has one run, of its own number."""
    of_draws = [(*row[:3], row[3], row[3], *row[4:]) for row in rows]
    return pd.DataFrame(of_draws, columns=COLUMNS)


def of_path(*points):
    """Runs of one draw of GeoSD at rising rates: pairs of an ID gain and an OOD gain."""
    rows = [("geosd", 10.0**i, 200, 0, *point, 0.01 * i) for i, point in enumerate(points)]
    return runs(*rows)


@pytest.mark.parametrize(
    ("points", "expected"),
    [
        ([(2.0, -1.0), (4.0, -2.0)], -1.5),
        ([(3.0, -0.7), (4.0, -2.0)], -0.7),  # exactly at a point
        ([(4.0, -2.0), (1.0, -9.0), (12.0, 4.0)], -1.5),  # falls back: where it has been first
        ([(-6.0, -3.0), (6.0, 3.0)], 1.5),  # a loss first, then three quarters of a way
        ([(2.0, -1.0), (2.9, -2.0)], math.nan),  # never gets so far
    ],
)
def test_a_path_over_rates_is_read_where_it_first_gets_so_far(points, expected):
    (paths,) = paths_of_runs(of_path(*points))
    found = path_gains_where_reached(paths, "id", 3.0)
    assert list(found["gain"]) == [pytest.approx(expected, nan_ok=True)]


def test_a_path_over_rates_has_the_whole_runs_with_rates_ascending():
    rows = [
        ("geosd", 1e-4, 200, 0, 9.0, -3.0, 0.2),
        ("geosd", 1e-5, 200, 0, 1.0, -1.0, 0.1),
        ("geosd", 1e-5, 24, 0, 5.0, 8.0, 0.05),  # stopped early
        ("sft", 1e-5, 200, 0, 5.0, 8.0, 0.05),  # one rate is no path
    ]
    over_rates, over_steps = paths_of_runs(runs(*rows))
    assert (over_rates.along, over_rates.at) == ("learning_rate", 200)
    assert list(over_rates.points["ood_avg"]) == [-1.0, -3.0]
    assert (over_steps.along, over_steps.at) == ("steps", 1e-5)
    assert list(over_steps.points["steps"]) == [24, 200]


def test_paths_over_steps_are_of_one_kind_where_each_method_has_a_rate_of_its_own():
    rows = [
        (name, rate, steps, 0, steps / 10, -steps / 20, steps / 1000)
        for name, rate in (("geosd", 3e-5), ("grpo", 1e-4))
        for steps in (100, 50)
    ]
    (paths,) = paths_of_runs(runs(*rows))
    assert (paths.along, paths.at) == ("steps", None)
    found = path_gains_where_reached(paths, "drift", 0.075)
    assert found.set_index("variant")["gain"].to_dict() == pytest.approx(
        {"geosd": -3.75, "grpo": -3.75}
    )


def test_a_rate_that_one_method_alone_was_stopped_at_has_no_paths():
    rows = [
        (name, rate, steps, 0, 1.0, 1.0, 0.1)
        for name, rates in (("geosd", (1e-5, 1e-4)), ("fwdkl", (1e-5, 1e-6)))
        for rate in rates
        for steps in (100, 50)
    ]
    kinds = [(paths.along, paths.at) for paths in paths_of_runs(runs(*rows))]
    assert kinds == [("learning_rate", 100), ("steps", 1e-5)]


def gains(**of_methods):
    """Gains of methods where they get so far, a draw each."""
    rows = [
        (name, draw, draw, gain)
        for name, values in of_methods.items()
        for draw, gain in enumerate(values)
    ]
    return pd.DataFrame(rows, columns=["variant", "seed", "draw", "gain"])


def test_methods_are_compared_over_the_draws_on_which_both_get_so_far():
    nan = math.nan
    geosd = np.array([1.0, 2.5, 0.5, 3.0, nan])
    fwdkl = np.array([0.2, 2.0, nan, 1.0, 4.0])
    jsd = np.array([1.1, 2.4, 0.2, 3.3, 1.0])
    found = compare_paths({"m": gains(geosd=geosd, fwdkl=fwdkl, jsd=jsd, sft=[nan] * 5)})
    assert {name: (one.reached, one.of, one.pairs) for name, one in found.items()} == {
        "geosd": (4, 5, 0),
        "fwdkl": (4, 5, 3),
        "jsd": (5, 5, 4),
        "sft": (0, 5, 0),
    }
    p = {}
    for name, own in (("fwdkl", fwdkl), ("jsd", jsd)):
        pairs = (geosd - own)[~np.isnan(geosd - own)]
        low, high = stats.t.interval(0.95, len(pairs) - 1, pairs.mean(), stats.sem(pairs))
        lead = found[name].difference
        assert [lead.difference, lead.low, lead.high] == pytest.approx([pairs.mean(), low, high])
        p[name] = stats.ttest_1samp(pairs, 0).pvalue
    low, high = sorted(p, key=p.get)
    assert found[low].p == pytest.approx(min(1, 2 * p[low]))
    assert found[high].p == pytest.approx(min(1, max(2 * p[low], p[high])))
    assert found["sft"].gain is None and found["sft"].difference is None
    assert found["geosd"].difference is None and math.isnan(found["geosd"].p)


def test_the_draws_of_all_models_count_alike():
    one, two = gains(geosd=[1.0, 2.0], jsd=[0.0, 0.0]), gains(geosd=[6.0], jsd=[0.0])
    found = compare_paths({"one": one, "two": two})["jsd"]
    assert found.difference.difference == pytest.approx(3.0)
    assert (found.reached, found.of, found.pairs) == (3, 3, 3)
