"""The plan of params.yaml: the requested resources suffice, and the printed plan shows it."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import yaml

from geosd.claims.published import published_gpu_hours
from geosd.cli import plan
from geosd.config import load, resolve
from geosd.config.run_folders import RunFolders
from geosd.costs.hours import plan_rows
from geosd.costs.training_memory import inference_gpu_memory, total_bytes, training_gpu_memory
from geosd.costs.workload import DEFAULTS
from geosd.models.published_architectures import architecture
from geosd.provenance.manifest import write_manifest

PAPERS = ("", "_selection", "_ablation", "_privilege", "_ladder", "_stepsize")


@pytest.fixture(scope="module")
def paper(root):
    params = load(root / "params.yaml")
    return SimpleNamespace(studies=[resolve(params, f"paper{part}") for part in PAPERS])


def test_every_job_is_given_half_as_long_again_as_is_reckoned(paper):
    for study in paper.studies:
        for model in study.models:
            for line in plan_rows(plan.model_workload(study, model, DEFAULTS), {}, DEFAULTS):
                if line.reckoned:
                    limit_hours = study.params.resources_of(model).job(line.rule).minutes / 60
                    assert limit_hours >= 1.5 * line.reckoned, (study.name, model, line.rule)


def test_jobs_at_8b_are_given_half_as_long_again_as_the_papers_took(paper):
    study = paper.studies[0]
    longer = {"evaluate": (32 * 600 + 16 * 500) / (16 * 1100)}  # samples here, and in the paper
    for rule, gpu_hours in published_gpu_hours().items():
        job = study.params.resources_of("qwen3-8b").job(rule)
        took = gpu_hours * longer.get(rule, 1)
        assert job.gpus * job.minutes / 60 >= 1.5 * took, rule


def test_every_training_fits_on_the_gpus_that_it_asks_for(paper):
    for study in paper.studies:
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
    assert "bandwidth_share" in printed and "The paper" not in printed.splitlines()[0]


def test_a_study_without_gpus_is_only_counted(capsys, root, tmp_path, monkeypatch):
    for name in ("base_models", "selected"):
        (tmp_path / name).symlink_to(root / name)
    monkeypatch.chdir(tmp_path)  # where no study has been run, whose hours would be compared
    plan.main("quick", None, root / "params.yaml", DEFAULTS)
    printed = capsys.readouterr().out
    assert "| train         |   12 |    0 |    0 |" in printed
    assert "On disk" not in printed


@pytest.mark.parametrize(
    ("study", "model", "message"),
    [
        ("paper", "qwen3-9b", "'qwen3-9b' is none of the paper's models.*qwen3-8b.*\nHint:"),
        ("paper", "mini-qwen3", "none of the paper's models"),
        ("papr", None, "'papr' is no study. Did you mean paper?"),
    ],
)
def test_unknown_names_are_refused_with_what_is_known(root, study, model, message):
    with pytest.raises(SystemExit, match=message):
        plan.main(study, model, root / "params.yaml", DEFAULTS)


def test_as_many_gpus_sample_as_the_sampler_shares_a_model_out_among(paper):
    for study in paper.studies:
        for model in study.models:
            needs = study.params.resources_of(model)
            among = study.section("rollout", model)["tensor_parallel"]
            gpus = {needs.pool.gpus, needs.evaluate.gpus, needs.train.inference_gpus}
            assert gpus == {among}, model


def test_what_the_sampler_takes_of_an_inference_gpu_leaves_room_for_the_worker(paper):
    """vLLM takes a fixed share of the GPU; the worker's own models lie beside it."""
    for study in paper.studies:
        for model in study.models:
            work = plan.model_workload(study, model, DEFAULTS)
            shape, request = architecture(model), work.gpu_requests["train"]
            share = study.section("rollout", model)["memory"] * DEFAULTS.device.memory
            for variant, training in work.trainings.items():
                parts = inference_gpu_memory(shape, training, request, DEFAULTS)
                own = {"weights that sample", "KV cache"}
                assert total_bytes(p for p in parts if p.name in own) <= share, (model, variant)
                worker_bytes = total_bytes(p for p in parts if p.name not in own)
                assert share + worker_bytes <= DEFAULTS.device.memory, (model, variant)


def test_the_trainers_of_each_model_share_a_steps_responses_evenly(paper):
    for study in paper.studies:
        for model in study.models:
            trainers = study.params.resources_of(model).train.trainers
            recipe = study.section("training", model)
            for responses in ("problems", "group", "final_rollouts"):
                assert recipe[responses] % trainers == 0, (model, responses)


def test_the_seconds_of_finished_jobs_stand_beside_the_estimate(
    root, tmp_path, monkeypatch, capsys
):
    for name in ("selected", "base_models", "profiles"):
        (tmp_path / name).symlink_to(root / name)
    monkeypatch.chdir(tmp_path)
    study = resolve(load(root / "params.yaml"), "paper")
    folders = RunFolders(study)
    for seed, seconds in ((0, 20 * 3600), (1, 40 * 3600)):
        folder = tmp_path / folders.evaluate("qwen3-8b", "geosd", seed)
        folder.mkdir(parents=True)
        content = {"code": {}, "packages": {}, "device": {}, "wall_s": float(seconds)}
        content |= {"peak_memory_bytes": {}, "inputs": {}, "outputs": {}, "settings": {}}
        write_manifest(folder / "manifest.json", content)
    assert plan.measured_hours(study) == {"qwen3-8b": {"evaluate": [20.0, 40.0]}}
    plan.main("paper", None, root / "params.yaml", DEFAULTS)
    lines = capsys.readouterr().out.splitlines()
    cells = {
        tuple(cell.strip() for cell in line.split("|")[1:3]): line.split("|")[3:-1]
        for line in lines
        if line.startswith("| ")
    }
    jobs, done, gpus, reckoned, took, off, together = map(float, (
        cell.replace(",", "") for cell in cells["qwen3-8b", "evaluate"]
    ))  # fmt: skip
    assert (jobs, done, gpus, took) == (90, 2, 1, 30)
    assert off == pytest.approx(30 / reckoned, rel=0.01) and together == 90 * 30
    other = [cell.replace(",", "") for cell in cells["ds-r1-llama-8b", "evaluate"]]
    assert float(other[-1]) == pytest.approx(90 * float(other[3]) * off, rel=0.01)


def test_the_peak_is_that_of_the_sites_schedule(root, monkeypatch):
    monkeypatch.chdir(root)
    site = yaml.safe_load(plan.SITE.read_text())
    assert (site["jobs"], site["trainings"]) == (DEFAULTS.jobs, DEFAULTS.trainings)
    study = resolve(load(root / "params.yaml"), "paper")
    parts = {part.name: part.bytes for part in plan.study_peak(study, DEFAULTS)}
    # What other studies wait for goes where they are run first; docs/paper.md, "Order".
    assert sum(parts.values()) - parts["weights for other studies"] < 1e12
