"""Which jobs read the section rollout, and what of it."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from geosd.config import load, resolve_study, settings

JOBS = {"pool": None, "train": "geosd", "evaluate": None, "evaluate_pi_0": None, "states": None}


@pytest.fixture(scope="module")
def params(root):
    return load(root / "params.yaml")


def rollout(params, study, model, rule):
    return settings(rule, resolve_study(params, study), model, JOBS[rule])["rollout"]


@pytest.mark.parametrize("rule", JOBS)
def test_a_laptops_studies_sample_by_transformers_and_the_papers_by_vllm(params, rule):
    laptop = {"engine": "transformers", "sequences": 256, "compile": True}
    assert rollout(params, "quick", "mini-qwen3", rule) == laptop
    assert rollout(params, "miniature", "mini-olmo3", rule) == laptop
    cluster = rollout(params, "paper", "qwen3-8b", rule)
    assert cluster["engine"] == "vllm" and "compile" not in cluster


def test_every_job_of_a_model_is_sampled_alike(params):
    dumped = [json.dumps(rollout(params, "paper", "qwen3-8b", rule)) for rule in JOBS]
    assert len(set(dumped)) == 1


def test_the_largest_model_is_shared_by_as_many_gpus_as_its_job_asks_for(params):
    for model in resolve_study(params, "paper_ladder").models:
        devices = rollout(params, "paper_ladder", model, "pool")["tensor_parallel"]
        needs = params.resources_of(model)
        assert devices == needs.pool.gpus == needs.evaluate.gpus == needs.train.inference_gpus


def test_what_vllm_alone_reads_changes_no_job_that_transformers_samples(params):
    vllm = params.protocol.rollout.model_copy(update={"memory": 0.5, "precision": "float32"})
    protocol = params.protocol.model_copy(update={"rollout": vllm})
    after = replace(
        resolve_study(params, "quick"), params=params.model_copy(update={"protocol": protocol})
    )
    for rule, variant in JOBS.items():
        before = settings(rule, resolve_study(params, "quick"), "mini-qwen3", variant)
        assert settings(rule, after, "mini-qwen3", variant) == before
