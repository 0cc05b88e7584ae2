"""The plan of params.yaml: the requested resources suffice, and the printed plan shows it."""

from __future__ import annotations

import json
import re
from types import SimpleNamespace

import pytest
import yaml
import yte

from geosd.claims.published import published
from geosd.cli import plan
from geosd.config import load, resolve_study
from geosd.config.run_folders import RunFolders
from geosd.costs.assumptions import DEFAULTS
from geosd.costs.gpu_memory import inference_gpu_memory, total_gpu_memory, training_gpu_memory
from geosd.costs.hours import hours_rows, measured_hours
from geosd.models.architectures import architecture
from geosd.prerequisites import slurm
from geosd.provenance.manifest import write_manifest

PAPERS = ("", "_selection", "_ablation", "_privilege", "_ladder", "_stepsize")


@pytest.fixture(scope="module")
def paper(root):
    params = load(root / "params.yaml")
    return SimpleNamespace(studies=[resolve_study(params, f"paper{part}") for part in PAPERS])


def test_every_job_is_given_half_as_long_again_as_is_reckoned(paper):
    for study in paper.studies:
        for model in study.models:
            work = plan.plan_model_workload(study, model, DEFAULTS)
            for line in hours_rows(work, work.jobs, {}, DEFAULTS):
                if line.reckoned:
                    limit_hours = study.params.resources_of(model).job(line.rule).minutes / 60
                    assert limit_hours >= 1.5 * line.reckoned, (study.name, model, line.rule)


def test_jobs_at_8b_are_given_half_as_long_again_as_the_papers_took(paper):
    study = paper.studies[0]
    longer = {"evaluate": (32 * 600 + 16 * 500) / (16 * 1100)}  # samples here, and in the paper
    in_text = {entry["key"]: entry["value"] for entry in published()["text"]}
    for rule in ("train", "evaluate", "pool"):  # on an H200, Appendix Runtime
        job = study.params.resources_of("qwen3-8b").job(rule)
        took = in_text[f"gpu_hours_{rule}"] * longer.get(rule, 1)
        assert job.gpus * job.minutes / 60 >= 1.5 * took, rule


def test_every_training_fits_on_the_gpus_that_it_asks_for(paper):
    for study in paper.studies:
        for model in study.models:
            work = plan.plan_model_workload(study, model, DEFAULTS)
            shape, request = architecture(model), work.gpu_requests["train"]
            for variant, training in work.trainings.items():
                for holds in (training_gpu_memory, inference_gpu_memory):
                    held = total_gpu_memory(holds(shape, training, request, DEFAULTS))
                    assert held <= DEFAULTS.usable_bytes, (model, variant)


def test_the_plan_of_a_model_says_what_it_holds_and_what_its_jobs_cost(capsys, root):
    plan.main("paper_ladder", "qwen3-32b", root / "params.yaml", DEFAULTS)
    printed = capsys.readouterr().out
    for part in ("first moments", "K-FAC factors", "KV cache", "anchor", "logits"):
        assert part in printed
    assert "bandwidth_share" in printed and "The paper" not in printed.splitlines()[0]


@pytest.fixture
def planned(root, tmp_path, monkeypatch):
    """The plan of a study, from a made-up dry run in a folder without results."""
    for name in ("base_models", "profiles"):
        (tmp_path / name).symlink_to(root / name)
    monkeypatch.chdir(tmp_path)

    def of(study, jobs, **options):
        (tmp_path / "jobs.json").write_text(json.dumps(jobs))
        options |= {"params": root / "params.yaml", "planned": tmp_path / "jobs.json"}
        plan.main(study, **options)

    return of


def test_a_study_without_gpus_is_counted_and_nothing_is_reckoned(planned, capsys):
    base = ["base", "mini-qwen3", 0, False, []]
    planned("quick", [base, ["train", "mini-qwen3", 1, False, [0]], ["all", "", 0, True, [1]]])
    printed = capsys.readouterr().out
    assert "| train         |    1 |" in printed and "| all           |    3 |" in printed
    assert "Others, of seconds or minutes, without GPU: all." in printed
    assert "GPUs" not in printed and "disk" not in printed


def test_a_finished_study_has_nothing_to_do(planned, capsys):
    planned("quick", [])
    assert "Nothing to do: every result of the study is there" in capsys.readouterr().out


def test_the_calendar_is_that_of_the_jobs_at_the_sites_bounds_and_at_others(planned, capsys):
    model = "qwen3-8b"
    jobs = [["base", model, 0, False, []], ["pool", model, 1, False, [0]]]
    jobs += [["train", model, 1, False, [1]] for _ in range(4)]
    jobs += [["evaluate", model, 2, False, [i]] for i in range(2, 6)]
    planned("paper_8b", jobs)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) <= 60 and max(map(len, lines)) <= 80
    rows = {cells[0]: cells for line in lines if len(cells := line.strip("| ").split()) > 5}
    reckoned = {
        name: float(cells[cells.index("h") - 1]) for name, cells in rows.items() if "h" in cells
    }
    calendar = [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in lines[lines.index("") :]
        if re.match(r"\| +(\d+|–) \|", line)
    ]
    hours = {(jobs, trainings, gpus): cells[0] for jobs, trainings, gpus, *cells in calendar}
    pool, train, evaluate = (reckoned[rule] for rule in ("pool", "train", "evaluate"))
    two = f"{pool + 2 * train + evaluate:.1f} h"
    four = f"{pool + train + evaluate:.1f} h"
    # Two trainings of three GPUs, then two evaluations beside the next two.
    expected = {("10", "2", "8"): two, ("64", "2", "8"): two, ("64", "16", "12"): four}
    shown = {key: float(value.removesuffix(" h")) for key, value in hours.items()}
    for key, value in (expected | {("–", "–", "12"): four}).items():
        assert shown[key] == pytest.approx(float(value.removesuffix(" h")), abs=0.2), key
    planned("paper_8b", jobs, gpus=3)  # one training or three evaluations at once
    assert re.search(r"\| +10 \| +2 \| +3 \|", capsys.readouterr().out)
    with pytest.raises(SystemExit, match="a job needs 3 gpus.*\nHint: --gpus 3"):
        planned("paper_8b", jobs, gpus=2)


def test_no_job_of_the_paper_asks_for_more_than_a_day_and_its_retries_suffice(
    paper, root, monkeypatch
):
    monkeypatch.chdir(root)
    site = slurm.read_slurm_site(root / "profiles/slurm/site.yaml")
    assert site.max_minutes == 24 * 60
    for study in paper.studies:
        for request in plan.plan_slurm_requests(study, study.models, site.max_minutes):
            assert request.minutes <= site.max_minutes
    profile = yte.process_yaml((root / "profiles/slurm/config.yaml").read_text())
    pieces = [
        study.params.resources_of(model).job(rule).pieces(site.max_minutes)
        for study in paper.studies
        for model in study.models
        for rule in ("pool", "train", "evaluate")
    ]
    assert profile["retries"] == max(pieces) - 1 + 3


def test_a_plan_says_which_job_fits_no_partition(planned, capsys, root, monkeypatch, tmp_path):
    site = yaml.safe_load((root / "profiles/slurm/site.yaml").read_text())
    site["partitions"] = {"gpu": {"max_gpu": 2}, "cpu": {}}
    (tmp_path / "site.yaml").write_text(yaml.safe_dump(site))
    monkeypatch.setattr(plan, "SITE", tmp_path / "site.yaml")
    planned("paper_8b", [])
    printed = capsys.readouterr().out
    assert "missing  partition of qwen3-8b/train: 3 GPUs" in printed and "evaluate:" not in printed
    site["partitions"]["gpu"]["max_gpu"] = 4
    (tmp_path / "site.yaml").write_text(yaml.safe_dump(site))
    planned("paper_8b", [])
    assert "Each fits one of cpu, gpu." in capsys.readouterr().out


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
            work = plan.plan_model_workload(study, model, DEFAULTS)
            shape, request = architecture(model), work.gpu_requests["train"]
            share = study.section("rollout", model)["memory"] * DEFAULTS.device.memory
            for variant, training in work.trainings.items():
                parts = inference_gpu_memory(shape, training, request, DEFAULTS)
                own = {"weights that sample", "KV cache"}
                assert total_gpu_memory(p for p in parts if p.name in own) <= share, (
                    model,
                    variant,
                )
                worker_bytes = total_gpu_memory(p for p in parts if p.name not in own)
                assert share + worker_bytes <= DEFAULTS.device.memory, (model, variant)


def test_the_trainers_of_each_model_share_a_steps_responses_evenly(paper):
    for study in paper.studies:
        for model in study.models:
            trainers = study.params.resources_of(model).train.trainers
            recipe = study.section("training", model)
            for responses in ("problems", "group", "final_rollouts"):
                assert recipe[responses] % trainers == 0, (model, responses)


def test_the_seconds_of_finished_jobs_stand_beside_the_estimate(root, tmp_path, planned, capsys):
    study = resolve_study(load(root / "params.yaml"), "paper")
    folders = RunFolders(study)
    for seed, seconds in ((0, 20 * 3600), (1, 40 * 3600)):
        folder = tmp_path / folders.evaluate("qwen3-8b", "geosd", seed)
        folder.mkdir(parents=True)
        content = {"code": {}, "packages": {}, "device": {}, "wall_s": float(seconds)}
        content |= {"peak_memory_bytes": {}, "inputs": {}, "outputs": {}, "settings": {}}
        write_manifest(folder / "manifest.json", content)
    assert measured_hours(folders.jobs()) == {"qwen3-8b": {"evaluate": [20.0, 40.0]}}
    other = "ds-r1-llama-8b"
    planned("paper", [["evaluate", m, 2, False, []] for m in ("qwen3-8b", "qwen3-8b", other)])
    (line,) = [li for li in capsys.readouterr().out.splitlines() if li.startswith("| evaluate ")]
    jobs, done, gpus, reckoned, took, asked, times, gpu_hours = (
        cell.strip() for cell in line.strip("|").split("|")[1:]
    )
    assert (jobs, done, gpus, took) == ("3", "2", "1/2/1", "30 h/–/–")
    assert (asked, times) == ("24 h", "3/5/3")
    first, _, third = (float(hours) for hours in reckoned.removesuffix(" h").split("/"))
    # Two jobs of 30 hours, and one of a model whose hours are off by as much.
    assert float(gpu_hours) == pytest.approx(2 * 30 + third * 30 / first, rel=0.01)


def test_the_peak_of_the_paper_at_the_sites_bounds_is_below_a_terabyte(root, monkeypatch):
    monkeypatch.chdir(root)
    site, study = (
        slurm.read_slurm_site(plan.SITE),
        resolve_study(load(root / "params.yaml"), "paper"),
    )
    [peak] = plan.plan_disk_peaks(study, [(site.jobs, site.trainings)], DEFAULTS)
    parts = {part.name: part.bytes for part in peak}
    # What other studies wait for goes where they are run first; docs/cluster.md, "Order".
    assert sum(parts.values()) - parts["weights for other studies"] < 1e12
