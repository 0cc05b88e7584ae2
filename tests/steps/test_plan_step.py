"""The plan of params.yaml: what is asked for suffices, and what is printed says so."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from geosd.claims.published import published_gpu_hours
from geosd.config import load, resolve
from geosd.costs.hours_and_disk import paper_hours_ratio, plan_rows
from geosd.costs.training_memory import inference_gpu_memory, total_bytes, training_gpu_memory
from geosd.costs.workload import DEFAULTS
from geosd.models.published_architectures import architecture
from geosd.steps import plan

PAPERS = ("", "_selection", "_ablation", "_privilege", "_ladder", "_stepsize")


@pytest.fixture(scope="module")
def given(root):
    params = load(root / "params.yaml")
    studies = [resolve(params, f"paper{part}") for part in PAPERS]
    paper = plan._paper_workload(studies[0], DEFAULTS)
    times = paper_hours_ratio(paper, plan.BASELINE, published_gpu_hours(), DEFAULTS)
    return SimpleNamespace(studies=studies, times=times)


def test_every_job_is_given_half_as_long_again_as_it_should_take(given):
    for study in given.studies:
        for model in study.models:
            for line in plan_rows(
                plan.model_workload(study, model, DEFAULTS), given.times, DEFAULTS
            ):
                if line.gpus:
                    asked = study.params.resources_of(model).job(line.rule).minutes / 60
                    most = max(line.expected_hours, line.roofline_hours)
                    assert asked >= 1.5 * most, (study.name, model, line.rule, most)


def test_every_training_fits_on_the_gpus_that_it_asks_for(given):
    for study in given.studies:
        for model in study.models:
            work = plan.model_workload(study, model, DEFAULTS)
            shape, request = architecture(model), work.gpu_requests["train"]
            for variant, training in work.trainings.items():
                for holds in (training_gpu_memory, inference_gpu_memory):
                    held = total_bytes(holds(shape, training, request, DEFAULTS))
                    assert held <= DEFAULTS.usable_bytes, (model, variant)


def test_the_plan_of_a_model_says_what_it_holds_and_what_its_jobs_cost(capsys, root):
    plan.main("paper_ladder", "qwen3-32b", root / "params.yaml", DEFAULTS)
    printed = capsys.readouterr().out
    for part in ("first moments", "K-FAC factors", "KV cache", "anchor", "logits", "585.2"):
        assert part in printed
    assert printed.count("| qwen3-32b |") == 5
    assert "bandwidth_share" in printed and "The paper" not in printed.splitlines()[0]


def test_a_model_of_another_study_is_told_where_it_is_run(capsys, root):
    plan.main("paper", "qwen3-32b", root / "params.yaml", DEFAULTS)
    assert "Study paper does not run it; paper_ladder does." in capsys.readouterr().out


def test_a_study_without_gpus_is_only_counted(capsys, root):
    plan.main("quick", None, root / "params.yaml", DEFAULTS)
    printed = capsys.readouterr().out
    assert "| train         |   12 |    0 |" in printed
    assert "On disk" not in printed


@pytest.mark.parametrize(
    ("study", "model", "says"),
    [
        ("paper", "qwen3-9b", "'qwen3-9b' is none of the paper's models.*qwen3-8b.*\nHint:"),
        ("paper", "mini-qwen3", "none of the paper's models"),
        ("papr", None, "'papr' is no study. Did you mean paper?"),
    ],
)
def test_unknown_names_are_told_with_what_is_known(root, study, model, says):
    with pytest.raises(SystemExit, match=says):
        plan.main(study, model, root / "params.yaml", DEFAULTS)


def test_as_many_gpus_sample_as_the_sampler_shares_a_model_out_among(given):
    for study in given.studies:
        for model in study.models:
            needs = study.params.resources_of(model)
            among = study.section("rollout", model)["tensor_parallel"]
            asked = {needs.pool.gpus, needs.evaluate.gpus, needs.train.inference_gpus}
            assert asked == {among}, model


def test_what_the_sampler_takes_of_an_inference_gpu_leaves_room_for_the_worker(given):
    """vLLM takes a fixed share of the GPU; the worker's own models lie beside it."""
    for study in given.studies:
        for model in study.models:
            work = plan.model_workload(study, model, DEFAULTS)
            shape, request = architecture(model), work.gpu_requests["train"]
            share = study.section("rollout", model)["memory"] * DEFAULTS.device.memory
            for variant, training in work.trainings.items():
                parts = inference_gpu_memory(shape, training, request, DEFAULTS)
                own = {"weights that sample", "KV cache"}
                assert total_bytes(p for p in parts if p.name in own) <= share, (model, variant)
                beside = total_bytes(p for p in parts if p.name not in own)
                assert share + beside <= DEFAULTS.device.memory, (model, variant)


def test_the_trainers_of_each_model_share_a_steps_responses_evenly(given):
    for study in given.studies:
        for model in study.models:
            trainers = study.params.resources_of(model).train.trainers
            recipe = study.section("training", model)
            for responses in ("problems", "group", "final_rollouts"):
                assert recipe[responses] % trainers == 0, (model, responses)
