"""A grid's points are variants: named by what they change, and nothing else is changed."""

from __future__ import annotations

import itertools

import pytest

from geosd.config import load, resolve_study, settings
from geosd.config.grids import candidates_of_grids
from geosd.config.rule_settings import sampling_rule_settings
from geosd.config.run_folders import RunFolders


@pytest.fixture(scope="module")
def study(root):
    return resolve_study(load(root / "params.yaml"), "quick_selection")


def test_every_point_of_every_grid_is_one_method(study):
    grid = study.params.studies["quick_selection"].grid
    points = sum(len(list(itertools.product(*axes.values()))) for axes in grid.values())
    assert len(study.candidates) == points
    assert list(study.methods) == ["pi_0", *study.candidates]
    assert list(study.trained) == list(study.candidates)


def test_a_candidate_is_its_variant_with_the_point_laid_over(study):
    for name, (variant, point) in study.candidates.items():
        candidate = settings("train", study, "mini-qwen3", name)
        of_variant = {
            **study.training("mini-qwen3", variant),
            **sampling_rule_settings(study, "mini-qwen3", "student", "teacher"),
        }
        assert candidate["objective"] == of_variant["objective"]
        changed = {key for key in candidate if candidate[key] != of_variant[key]} - {"optimiser"}
        assert changed <= {"learning_rate"}
        assert candidate["learning_rate"] == point["learning_rate"]


def test_several_axes_make_a_product_and_dots_lead_into_sections():
    candidates = candidates_of_grids(
        {"geosd": {"learning_rate": [1.0, 2.0], "optimiser.kfac.damping": [3.0]}}
    )
    assert candidates == {
        f"geosd-learning_rate_{rate}-damping_3.0": (
            "geosd",
            {"learning_rate": rate, "optimiser": {"kfac": {"damping": 3.0}}},
        )
        for rate in (1.0, 2.0)
    }


def test_several_grids_of_a_variant_are_swept_separately():
    candidates = candidates_of_grids(
        {"jsd": [{"learning_rate": [1.0, 2.0]}, {"objective.beta": [0.5]}]}
    )
    assert candidates == {
        "jsd-learning_rate_1.0": ("jsd", {"learning_rate": 1.0}),
        "jsd-learning_rate_2.0": ("jsd", {"learning_rate": 2.0}),
        "jsd-beta_0.5": ("jsd", {"objective": {"beta": 0.5}}),
    }


def test_no_selection_shares_a_problem_with_its_study(study, root):
    quick = resolve_study(load(root / "params.yaml"), "quick")
    selection_data, study_data = settings("data", study), settings("data", quick)
    # The same draw, so that the splits are the disjoint ones of one study; at another setting.
    other = ("purpose", "conflict")
    assert {k: v for k, v in selection_data.items() if k not in other} == {
        k: v for k, v in study_data.items() if k not in other
    }


def test_a_selection_by_validation_judges_the_runs_of_the_study_on_problems_of_no_test(root):
    params = load(root / "params.yaml")
    selection = RunFolders(resolve_study(params, "miniature_selection"))
    rates = RunFolders(resolve_study(params, "miniature_rates"))
    assert list(selection.study.candidates) == list(rates.study.candidates)
    for model in selection.study.models:
        for name in selection.study.candidates:
            assert selection.train(model, name, 2) == rates.train(model, name, 2)
            assert selection.evaluate(model, name, 2) != rates.evaluate(model, name, 2)
    assert selection.train_problems == rates.train_problems
    assert selection.test_problems == rates.test_problems.replace("test", "select_validation")
