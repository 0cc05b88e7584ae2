"""The schedule that `geosd plan` simulates, with the seconds of jobs that have run, and SLURM's."""

from __future__ import annotations

import contextlib
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

import pandas as pd
from jobs import local_jobs, slurm_jobs
from scipy.stats import kendalltau

from geosd.cli.snakemake_runs import SnakemakeJob, snakemake_dry_run
from geosd.costs.schedule import ScheduledTask, scheduled_start_times


def planned_jobs(project: Path, study: str) -> list[SnakemakeJob]:
    """The jobs that Snakemake would run for a study of a project."""
    with contextlib.chdir(project):
        return [SnakemakeJob(*row) for row in snakemake_dry_run(study)]


def simulated(
    jobs: Sequence[SnakemakeJob],
    measured: pd.DataFrame,
    local_seconds: Mapping[str, float],
    bounds: Mapping[str, int],
) -> dict[str, Any]:
    """A study's jobs scheduled with the mean seconds of their rule and model, beside what was.

    Args:
        jobs: What Snakemake was to run.
        measured: SLURM's jobs of the study, as `slurm_jobs` gives them.
        local_seconds: Rule -> mean seconds where the driver runs it itself.
        bounds: What may be in use at once: `jobs`, `trainings`, `gpus`, `megabytes`.

    Returns:
        `simulated` and `measured`, seconds from the first start on SLURM to the last end there;
        `order`, Kendall's tau between the starts of both: n-th start beside n-th start of the same
        rule and model, since jobs of one rule and model are alike.
    """
    of_model = measured.assign(model=[model_of(each, jobs) for each in measured["wildcards"]])
    groups = of_model.sort_values("start").groupby(["rule", "model"])
    like = {key: group for key, group in groups}
    tasks = []
    for job in jobs:
        group = like.get((job.rule, job.model))
        if job.local or group is None:
            tasks.append(
                ScheduledTask(local_seconds.get(job.rule, 0.0), job.needs, {}, job.priority)
            )
            continue
        uses = {"jobs": 1, "trainings": int(job.rule == "train")}
        uses |= {name: int(group[name].max()) for name in ("gpus", "megabytes")}
        tasks.append(ScheduledTask(fmean(group["seconds"]), job.needs, uses, job.priority))
    starts = scheduled_start_times(tasks, bounds)
    reckoned = defaultdict(list)
    for at, job in sorted(zip(starts, jobs, strict=True), key=lambda pair: pair[0]):
        if (job.rule, job.model) in like and not job.local:
            reckoned[job.rule, job.model].append(at)
    both = [
        pair for key, at in reckoned.items() for pair in zip(at, like[key]["start"], strict=True)
    ]
    submitted = [
        (at, at + task.seconds)
        for at, task, job in zip(starts, tasks, jobs, strict=True)
        if not job.local
    ]
    return {
        "jobs": len(both),
        "simulated": round(max(end for _, end in submitted) - min(at for at, _ in submitted)),
        "measured": round(of_model["end"].max() - of_model["start"].min()),
        "order": round(float(kendalltau(*zip(*both, strict=True)).statistic), 2),
    }


def model_of(wildcards: str, jobs: Sequence[SnakemakeJob]) -> str:
    """The model that a SLURM job's wildcards begin with; empty where they name none."""
    named = {job.model for job in jobs if f"{wildcards}_".startswith(f"{job.model}_")}
    return max(named, key=len, default="")


def compare(
    project: Path, jobs: Sequence[SnakemakeJob], earlier: int, bounds: Mapping[str, int]
) -> dict[str, Any]:
    """See `simulated`: of the SLURM jobs of a project those after the first `earlier`."""
    of_slurm = slurm_jobs(project)
    of_driver = local_jobs(project, {*of_slurm["rule"]}).groupby("rule")["seconds"].mean()
    return simulated(jobs, of_slurm.iloc[earlier:], of_driver.to_dict(), bounds)
