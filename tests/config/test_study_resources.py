"""A study's own requests of jobs, for a placement on other GPUs."""

from __future__ import annotations

import pytest

from geosd.config import ConfigError, load, resolve_study
from geosd.config.run_folders import RunFolders

OWN = "      qwen3-8b: {train: {gpus: 6, inference_gpus: 2}}\n"


@pytest.fixture(scope="module")
def params(root):
    return load(root / "params.yaml")


def test_a_study_lays_its_requests_over_those_of_the_model(params):
    common = params.resources_of("qwen3-8b")
    own = resolve_study(params, "paper_pilot_80gb").resources_of("qwen3-8b")
    assert (own.train.gpus, own.train.inference_gpus, own.train.trainers) == (6, 2, 4)
    assert (own.train.mem_mb, own.pool) == (common.train.mem_mb, common.pool)
    assert resolve_study(params, "paper_pilot").resources_of("qwen3-8b") == common


def test_another_placement_is_of_the_same_runs(params):
    folders = [
        RunFolders(resolve_study(params, name)) for name in ("paper_pilot", "paper_pilot_80gb")
    ]
    shared, other = ({*each.shared()} for each in folders)
    assert shared == other


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ("{train: {gpus: 6, inference_gpus: 6}}", "inference_gpus is 6, all of gpus"),
        ("{train: {inference_gpus: 7}}", "7 is more than gpus, which is 3"),
        ("{train: {gpus: 7, inference_gpus: 2}}", "8 cannot be shared evenly by the 5 GPUs"),
        ("{train: {gpu: 6}}", "there is no such key"),
        ("{extends: default}", "there is no such key"),
    ],
)
def test_requests_that_do_not_fit_together_are_refused_with_their_study(edited, wrong, message):
    changed = edited((OWN, f"      qwen3-8b: {wrong}\n"), studies=["paper_pilot_80gb"])
    with pytest.raises(ConfigError, match=message) as refused:
        load(changed)
    assert "paper_pilot_80gb" in str(refused.value)


def test_a_model_that_there_is_not_is_refused(edited):
    changed = edited((OWN, "      qwen3-9b: {train: {gpus: 6}}\n"), studies=["paper_pilot_80gb"])
    with pytest.raises(ConfigError, match="qwen3-9b is no model. Did you mean qwen3-8b"):
        load(changed)
