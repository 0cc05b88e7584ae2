"""The dry run of the paper's studies: the jobs that the plan counts, in time, without data."""

from __future__ import annotations

import resource

import pytest

from geosd.config import load, resolve
from geosd.config.jobs import jobs

SECONDS = 30
OTHERS = ("paper_selection", "paper_ablation", "paper_privilege", "paper_ladder", "paper_stepsize")


def counted(root, name):
    study = resolve(load(root / "params.yaml"), name)
    return {rule: n * len(study.models) for rule, n in jobs(study).items()}


def planned(fresh, name):
    return dict(fresh.wanted("--config", f"study={name}"))


def test_the_study_paper_is_planned_job_by_job_in_half_a_minute_of_a_processor(fresh, root):
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    wanted = planned(fresh, "paper")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime < SECONDS
    assert {rule: wanted.get(rule) for rule in counted(root, "paper")} == counted(root, "paper")
    assert wanted["train"] == 3 * 9 * 10
    assert wanted["evaluate"] + wanted["evaluate_pi_0"] == 3 * 10 * 10


@pytest.mark.slow
@pytest.mark.parametrize("name", OTHERS)
def test_every_other_study_of_the_paper_has_the_jobs_that_are_counted(fresh, root, name):
    wanted = planned(fresh, name)
    assert {rule: wanted.get(rule) for rule in counted(root, name)} == counted(root, name)


def test_jobs_ask_for_the_gpus_of_their_model(fresh):
    target = "results/paper_ladder/train/qwen3-32b/geosd/0/model.safetensors"
    printed = fresh.snakemake(
        "--profile", "local", "--dry-run", "--printshellcmds", "--quiet", "host",
        "--config", "study=paper_ladder", "--", target,
    )  # fmt: skip
    assert "launch.py --gpus 8 --processes 7 --scratch" in printed
    assert "/geosd/0 --worker > logs" in printed
    assert "launch.py --gpus 0" in printed  # the checkpoint is fetched without one
