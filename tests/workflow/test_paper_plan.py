"""The dry run of the paper's studies: the jobs that the plan counts, in time, without data."""

from __future__ import annotations

import re
import resource
from dataclasses import replace

import pytest

from geosd.config import load, resolve
from geosd.config.job_counts import job_counts

SECONDS = 30
OTHERS = ("paper_selection", "paper_ablation", "paper_privilege", "paper_ladder", "paper_stepsize")


def counted(root, name):
    study = resolve(load(root / "params.yaml"), name)
    return {rule: n * len(study.models) for rule, n in job_counts(study).items()}


def planned(fresh, name):
    return dict(fresh.planned_jobs("--config", f"study={name}"))


def test_a_dry_run_ends_with_the_gpu_hours_of_a_study_that_asks_for_gpus(fresh, root):
    printed = fresh.snakemake("--profile", "slurm", "--dry-run", "--config", "study=paper")
    line = re.search(r"^\| all .*$", printed, re.M).group()
    jobs_, done, hours = (int(n.replace(",", "")) for n in re.findall(r"[\d,]+", line))
    in_jobs = ("base", "pool", "train", "evaluate", "evaluate_pi_0", "states")
    assert jobs_ == sum(counted(root, "paper")[rule] for rule in in_jobs)
    assert done == 0
    # Appendix Runtime gives 7, 28 and 20 GPU-hours at 8B; Olmo-3 and R1 are of about that size.
    # 32 samples of 600 OOD problems and 16 of 500 ID problems are evaluated, not 16 of each. A
    # roofline, with responses at the cap, lies below what was paid, and not by an order.
    papers = 270 * 7 + 300 * 28 * (600 * 32 + 500 * 16) / (1100 * 16)
    assert papers / 4 < hours < papers
    quick = fresh.snakemake("--profile", "local", "--dry-run", "--config", "study=quick")
    assert "total" in quick and "| all" not in quick


def test_the_study_paper_is_planned_job_by_job_in_half_a_minute_of_a_processor(fresh, root):
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    jobs = planned(replace(fresh, forks=False), "paper")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime < SECONDS
    assert {rule: jobs.get(rule) for rule in counted(root, "paper")} == counted(root, "paper")
    assert jobs["train"] == 3 * 9 * 10
    assert jobs["evaluate"] + jobs["evaluate_pi_0"] == 3 * 10 * 10


@pytest.mark.slow
@pytest.mark.parametrize("name", OTHERS)
def test_every_other_study_of_the_paper_has_the_jobs_that_are_counted(fresh, root, name):
    jobs = planned(fresh, name)
    assert {rule: jobs.get(rule) for rule in counted(root, name)} == counted(root, name)


def test_jobs_ask_for_the_gpus_of_their_model(fresh):
    folder = fresh.folders("paper_ladder").train("qwen3-32b", "geosd", 0)
    target = f"{folder}/model.safetensors"
    printed = fresh.snakemake(
        "--profile", "local", "--dry-run", "--printshellcmds", "--quiet", "host",
        "--config", "study=paper_ladder", "--", target,
    )  # fmt: skip
    assert "launch.py --gpus 6 --nodes 2 --processes 12 --scratch" in printed
    assert f"--scratch {folder.replace('results', 'scratch')} --workers 4" in printed
    assert "launch.py --gpus 0" in printed  # the checkpoint is fetched without one
