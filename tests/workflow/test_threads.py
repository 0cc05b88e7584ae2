"""The threads of a study's jobs as Snakemake plans them, and that they rerun nothing."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

PLANNED = """
import json, sys
from pathlib import Path
from snakemake.api import SnakemakeApi
from snakemake.settings.types import (
    ConfigSettings, DAGSettings, OutputSettings, Quietness, ResourceSettings
)
with SnakemakeApi(OutputSettings(dryrun=True, quiet={Quietness.ALL})) as api:
    workflow = api.workflow(
        resource_settings=ResourceSettings(cores=int(sys.argv[2])),
        config_settings=ConfigSettings(config={"study": sys.argv[1]}),
        snakefile=Path("Snakefile"),
    )
    workflow.dag(DAGSettings()).execute_workflow(executor="dryrun")
    jobs = workflow._workflow.dag.jobs
    print(json.dumps({job.rule.name: [job.threads, job.priority] for job in jobs}))
"""


def planned(workflow, study, cores):
    """Threads and priority of the jobs, by rule."""
    done = subprocess.run(
        [sys.executable, "-c", PLANNED, study, str(cores)],
        cwd=workflow.folder,
        env={**os.environ, "PYTHONPATH": str(workflow.folder / "src")},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.parametrize(("cores", "alone", "of_two"), [(1, 1, 1), (2, 2, 1), (4, 4, 2)])
def test_one_training_takes_all_cores_and_two_evaluations_half_each(fresh, cores, alone, of_two):
    jobs = planned(fresh, "smollm2", cores)
    assert [jobs[rule][0] for rule in ("pool", "train")] == [alone, alone]
    assert [jobs[rule][0] for rule in ("evaluate", "evaluate_pi_0")] == [of_two, of_two]
    assert jobs["train"][1] > jobs["evaluate_pi_0"][1]  # whose core would idle beside two threads


def test_the_miniature_stays_on_one_thread(fresh):
    jobs = planned(fresh, "quick", 4)
    assert {jobs[rule][0] for rule in ("base", "pool", "train", "evaluate")} == {1}


def test_other_threads_and_cores_rerun_nothing(done):
    default = "  default:                     # the miniature, on one core\n"
    limits = "pool: {gpus: 0, mem_mb: 3000, minutes: 60"
    assert default in (done.folder / "params.yaml").read_text()
    done.edit("params.yaml", limits, limits + ", threads: 2")
    assert done.planned_jobs("--cores", "4") == {}
