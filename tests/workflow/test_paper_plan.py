"""The dry run of the paper's studies: the jobs that the plan counts, in time, without data."""

from __future__ import annotations

import re
import resource
from dataclasses import replace

import pytest

from geosd.config import load, resolve_study
from geosd.config.job_counts import job_counts

SECONDS = 30
OTHERS = ("paper_selection", "paper_privilege", "paper_ladder", "paper_stepsize")
"""All but paper_ablation, which is planned as paper_privilege is."""


def counted(root, name):
    study = resolve_study(load(root / "params.yaml"), name)
    return {rule: n * len(study.models) for rule, n in job_counts(study).items()}


def planned(fresh, name):
    return dict(fresh.planned_jobs("--config", f"study={name}"))


def plan_in(printed):
    """The plan at the end of a dry run's words, and its jobs and GPU-hours in all."""
    text = printed[printed.index("# Study paper") :].partition("\nUsing profile")[0].strip()
    (line,) = re.findall(r"^\| all .*$", text, re.M)
    return text, [cell.strip() for cell in line.strip("|").split("|") if cell.strip()][1:]


@pytest.fixture(scope="module")
def paper(fresh) -> tuple[str, float]:
    """What a dry run of study paper prints, and the seconds of a processor that it takes."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    alone = replace(fresh, forks=False)
    printed = alone.snakemake("--profile", "slurm", "--dry-run", "--config", "study=paper")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return printed, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


@pytest.mark.slow
def test_a_dry_run_ends_with_the_plan_that_stands_on_the_page(paper, fresh, root):
    printed, _ = paper
    text, (jobs, gpu_hours) = plan_in(printed)
    assert len(text.splitlines()) <= 64 and max(map(len, text.splitlines())) <= 80
    assert text in (root / "docs/cluster.md").read_text(encoding="utf-8")
    assert jobs == re.search(r"^total +(\d+)$", printed, re.M)[1]  # Snakemake's own count
    # Appendix Runtime gives 7, 28 and 20 GPU-hours at 8B; Olmo-3 and R1 are of about that size.
    # 32 samples of 600 OOD problems and 16 of 500 ID problems are evaluated, not 16 of each. A
    # roofline, with responses at the cap, lies below what was paid, and not by an order.
    papers = 270 * 7 + 300 * 28 * (600 * 32 + 500 * 16) / (1100 * 16)
    assert papers / 4 < float(gpu_hours.replace(",", "")) < papers
    quick = fresh.snakemake("--profile", "local", "--dry-run", "--config", "study=quick")
    assert "total" in quick and "| all" not in quick


@pytest.mark.slow
def test_the_study_paper_is_planned_job_by_job_in_half_a_minute_of_a_processor(paper, root):
    printed, seconds = paper
    assert seconds < SECONDS
    jobs = {rule: int(n) for rule, n in re.findall(r"^(\w+) +(\d+)$", printed, re.M)}
    assert {rule: jobs.get(rule) for rule in counted(root, "paper")} == counted(root, "paper")
    assert jobs["train"] == 3 * 9 * 10
    assert jobs["evaluate"] + jobs["evaluate_pi_0"] == 3 * 10 * 10


@pytest.mark.slow
@pytest.mark.parametrize("name", OTHERS)
def test_every_other_study_of_the_paper_has_the_jobs_that_are_counted(fresh, root, name):
    printed = fresh.snakemake("--profile", "local", "--dry-run", "--config", f"study={name}")
    jobs = {rule: int(n) for rule, n in re.findall(r"^(\w+) +(\d+)$", printed, re.M)}
    assert {rule: jobs.get(rule) for rule in counted(root, name)} == counted(root, name)
    row = re.search(rf"^\| `{name}` \|(.*)\|$", (root / "docs/cluster.md").read_text(), re.M)[1]
    assert row.split("|")[-3].strip() == plan_in(printed)[1][1]  # GPU-hours


def test_jobs_ask_for_the_gpus_of_their_model(fresh, tmp_path, monkeypatch):
    monkeypatch.setenv("GEOSD_PLANNED_JOBS", str(tmp_path / "jobs.json"))  # and no plan is printed
    folder = fresh.folders("paper_ladder").train("qwen3-32b", "geosd", 0)
    target = f"{folder}/model.safetensors"
    printed = fresh.snakemake(
        "--profile", "local", "--dry-run", "--printshellcmds", "--quiet", "host",
        "--config", "study=paper_ladder", "--", target,
    )  # fmt: skip
    assert "launch.py --gpus 6 --nodes 2 --processes 12 --scratch" in printed
    assert f"--scratch {folder.replace('results', 'scratch')} --workers 4" in printed
    assert "launch.py --gpus 0" in printed  # the checkpoint is fetched without one
