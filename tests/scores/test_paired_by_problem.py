"""Differences with the problem as the unit: exact cases, and how often the interval holds truth."""

import runpy
from pathlib import Path

import numpy as np
import pytest

from geosd.problems.records import Sample

PROGRAM = runpy.run_path(str(Path(__file__).parents[2] / "analysis/paired_by_problem.py"))
difference, shares_right = PROGRAM["difference"], PROGRAM["shares_right"]


def sample(problem, correct, benchmark="id"):
    return Sample(benchmark, problem, 0, "", 1, None, correct, "stop")


def test_a_problems_value_is_the_share_of_all_its_samples():
    rows = [sample("b", True), sample("a", False), sample("b", False), sample("x", True, "ood")]
    assert shares_right(rows) == {"id": {"a": 0.0, "b": 0.5}, "ood": {"x": 1.0}}


def test_the_same_gap_at_every_problem_has_no_spread_and_benchmarks_weigh_alike():
    a = {"x": {"1": 0.75, "2": 0.5}, "y": {"3": 1.0}}
    b = {"x": {"1": 0.5, "2": 0.25}, "y": {"3": 0.5}}
    assert difference(a, b) == pytest.approx((37.5, 37.5, 37.5))
    with pytest.raises(ValueError, match="other problems.*\nHint: "):
        difference(a, {"x": b["x"]})


def test_the_interval_holds_the_mean_of_all_problems_as_often_as_it_says():
    draw, held = np.random.default_rng(0), 0
    for trial in range(200):
        gaps = draw.choice([-0.5, 0.0, 0.5], p=[0.2, 0.5, 0.3], size=60)  # mean .05
        a = {"x": {str(i): gap for i, gap in enumerate(gaps)}}
        b = {"x": dict.fromkeys(a["x"], 0.0)}
        _, low, high = difference(a, b, seed=trial)
        held += low <= 5.0 <= high
    assert held / 200 == pytest.approx(0.95, abs=0.04)
