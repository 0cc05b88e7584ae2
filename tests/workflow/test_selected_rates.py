"""What a selection chooses for each model is what the plan of its studies trains with."""

from __future__ import annotations

import contextlib
import shutil

import pandas as pd
import pytest

from geosd.cli.select_rates import selected_rates_block
from geosd.config import load, resolve_study
from geosd.config.sweeps import swept_values
from geosd.scores.tidy import COLUMNS

GRIDS = """
  small_rates:
    extends: quick
    about: Rates of two methods on two models.
    kind: rates
    models: [mini-qwen3, mini-llama]
    methods: [pi_0]
    outputs: [table_rates]
    grid:
      fwdkl: {learning_rate: [1.0e-6, 1.0e-5, 1.0e-4]}
      geosd: {learning_rate: [1.0e-6, 1.0e-5, 1.0e-4]}

  small_selection:
    extends: small_rates
    about: One of these rates for each method on each model.
    kind: selection
    outputs: [table_selection]
    data: {purpose: selection}
    evaluation: {samples: 8, pass_k: [1, 8]}
"""
STUDY = """
  small:
    extends: quick
    about: Two methods at their own rates on two models.
    kind: main
    models: [mini-qwen3, mini-llama]
    methods: [pi_0, fwdkl, geosd]
    outputs: [table_main]
"""
BEST = {
    ("mini-qwen3", "fwdkl"): 1e-6,
    ("mini-qwen3", "geosd"): 1e-4,
    ("mini-llama", "fwdkl"): 1e-5,
    ("mini-llama", "geosd"): 1e-5,
}


@pytest.fixture
def workflow(fresh, tmp_path):
    """A copy of the workflow with a selection on two models, whose scores prefer `BEST`."""
    copy = type(fresh)(tmp_path / "copy")
    shutil.copytree(fresh.folder, copy.folder, symlinks=True)
    copy.keep_studies("quick", "quick_selection")
    text = (copy.folder / "params.yaml").read_text().rstrip("\n") + "\n"
    (copy.folder / "params.yaml").write_text(text + GRIDS)
    return copy


def select(workflow) -> None:
    """Paste what a selection with made-up scores chooses into a study that takes it."""
    with contextlib.chdir(workflow.folder):
        selection = resolve_study(load("params.yaml"), "small_selection")
        rows = [
            (model, run, seed, 0, "select_validation", "ID", "avg@k", 8, 60.0 if best else 40.0)
            for model in selection.models
            for variant, candidates in swept_values(selection, "learning_rate").items()
            for run, rate in candidates.items()
            for best in [rate == BEST[model, variant]]
            for seed in selection.seeds
        ]
        rows += [
            (model, "pi_0", seed, 0, "select_validation", "ID", "avg@k", 8, 45.0)
            for model in selection.models
            for seed in selection.seeds
        ]
        table = pd.DataFrame(rows, columns=list(COLUMNS["scores"]))
    workflow.append("params.yaml", STUDY + selected_rates_block(selection, table, "0" * 64))


def test_the_plan_of_a_study_trains_each_model_at_its_own_rates(workflow):
    assert set(workflow.planned_jobs("--config", "study=small_selection")) >= {
        "train",
        "table_selection",
    }
    select(workflow)
    planned = set(workflow.outputs("small"))
    rates = workflow.folders("small_rates")
    trained = {
        f"{rates.train(model, f'{variant}-learning_rate_{best}', seed)}/model.safetensors"
        for (model, variant), best in BEST.items()
        for seed in (0, 1, 2)
    }
    of_train = {name for name in planned if name.startswith("results/train/")}
    assert {name for name in of_train if name.endswith("/model.safetensors")} == trained


def test_the_study_of_all_rates_shares_the_selected_runs(workflow):
    select(workflow)
    study, rates = workflow.folders("small"), workflow.folders("small_rates")
    shared = {row.train for row in study.rows()} & {row.train for row in rates.rows()}
    assert len(shared - {""}) == len(BEST) * 3
    jobs = workflow.planned_jobs("--config", "study=small_rates")
    assert jobs["train"] == 2 * 2 * 3 * 3
    assert jobs["table_rates"] == 1
