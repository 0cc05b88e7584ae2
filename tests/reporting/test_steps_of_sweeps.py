"""Figures and tables of sweeps, ladders and ablations, each on a study made up for it."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from made_up_tables import made_up_tables

from geosd.cli import render
from geosd.config import load, resolve_study, settings
from geosd.reporting.specs import output_specs

PARAMS = Path(__file__).parents[2] / "params.yaml"
STUDIES = """
  made_up:
    extends: quick
    about: Sweeps for these tests.
    kind: main
    models: [mini-qwen3, mini-llama]
    methods: [pi_0, fwdkl, geosd, geosd_no_prox]
    seeds: [0, 1]
    variants:                  # rates of these tests: a new selection changes those of quick
      fwdkl: {training: {learning_rate: 1.0e-6}}
      geosd: {training: {learning_rate: 3.0e-5}}
    grid:
      fwdkl:
        - {learning_rate: [1.0e-7, 1.0e-6], steps: [100]}
        - {steps: [25, 50]}
        - {privilege: [0.25, 0.5]}
      geosd:
        - {learning_rate: [1.0e-5, 3.0e-5]}
        - {learning_rate: [1.0e-5], objective.drift_penalty: [0.5]}
        - {privilege: [0.5, 1.0]}
"""


@pytest.fixture(scope="module")
def study(tmp_path_factory) -> Path:
    """A folder with params.yaml and the tidy files of its study `made_up`."""
    folder = tmp_path_factory.mktemp("made_up")
    (folder / "params.yaml").write_text(PARAMS.read_text().rstrip("\n") + "\n" + STUDIES)
    resolved = resolve_study(load(folder / "params.yaml"), "made_up")
    for name, table in made_up_tables(resolved).items():
        table.to_csv(folder / f"{name}.csv", index=False)
    return folder


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "inputs"),
    [
        ("figure_privilege", ["scores"]),
        ("figure_scale", ["scores"]),
        ("figure_stepsize", ["scores"]),
        ("figure_rates", ["scores"]),
        ("table_rates", ["scores"]),
        ("table_ablations", ["drift", "scores"]),
    ],
)
def test_each_is_written_as_what_its_rule_declares(study, tmp_path, name, inputs):
    files = tuple(study / f"{tidy}.csv" for tidy in inputs)
    render.main(name, "made_up", tmp_path, files, study / "params.yaml")
    endings = ("csv", "md", "tex") if name.startswith("table_") else ("pdf", "svg", "png")
    written = sorted(path.name for path in tmp_path.iterdir())
    assert written == sorted(f"{name}.{ending}" for ending in endings)
    assert all(path.stat().st_size for path in tmp_path.iterdir())


@pytest.fixture
def resolved(study):
    return resolve_study(load(study / "params.yaml"), "made_up")


def test_a_sweep_names_its_candidates_and_the_variant_itself_once(resolved):
    found = settings("figure_privilege", resolved)["points"]["mini-llama"]
    assert [(p["run"], p["variant"], p["privilege"]) for p in found] == [
        ("fwdkl-privilege_0.25", "fwdkl", 0.25),
        ("fwdkl-privilege_0.5", "fwdkl", 0.5),
        ("geosd-privilege_0.5", "geosd", 0.5),
        ("geosd-privilege_1.0", "geosd", 1.0),
        ("fwdkl", "fwdkl", 1.0),
    ]


def test_a_candidate_that_varies_something_else_too_is_no_point_of_the_sweep(resolved):
    found = settings("figure_stepsize", resolved)["points"]["mini-qwen3"]
    assert [(p["run"], p["learning_rate"], p["steps"]) for p in found] == [
        ("fwdkl-learning_rate_1e-07-steps_100", 1e-7, 100),
        ("fwdkl-learning_rate_1e-06-steps_100", 1e-6, 100),
        ("fwdkl-steps_25", 1e-6, 25),
        ("fwdkl-steps_50", 1e-6, 50),
        ("geosd-learning_rate_1e-05", 1e-5, 100),
        ("geosd-learning_rate_3e-05", 3e-5, 100),
    ]


def test_candidates_are_no_methods_of_the_other_figures(resolved):
    asking = [name for name, shown in output_specs().items() if "methods" in shown.settings]
    assert {"figure_frontier", "table_main", "table_significance"} <= set(asking)
    for rule in [name for name in asking if not output_specs()[name].trained]:
        assert settings(rule, resolved)["methods"] == ["pi_0", "fwdkl", "geosd", "geosd_no_prox"]


def test_a_study_without_sweep_has_no_points_and_no_error(study):
    quick = resolve_study(load(study / "params.yaml"), "quick")
    assert settings("figure_stepsize", quick)["points"] == {"mini-qwen3": []}


def test_the_figures_name_what_the_quick_study_lacks(study, tmp_path):
    files = tmp_path / "scores.csv"
    shutil.copy(study / "scores.csv", files)
    lacking = {"figure_privilege": "two values of privilege", "figure_scale": "compares models"}
    for name, words in lacking.items():
        with pytest.raises(ValueError, match=f"(?s){words}.*Hint:"):
            render.main(name, "quick", tmp_path, (files,), study / "params.yaml")


def test_a_file_that_is_missing_or_not_read_is_named(study, tmp_path):
    for files in ([], ["drift"], ["scores", "drift", "consensus"]):
        given = tuple(study / f"{tidy}.csv" for tidy in files)
        with pytest.raises(ValueError, match="(?s)_ablations reads scores.csv, drift.csv.*Hint"):
            render.main("table_ablations", "made_up", tmp_path, given, study / "params.yaml")
