"""Threads, memory and time of jobs as Snakemake plans them, and that they rerun nothing."""

from __future__ import annotations

import json
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
    jobs = {job.rule.name: job for job in workflow._workflow.dag.jobs}
    planned = {name: [job.threads, job.priority] for name, job in jobs.items()}
    for name, job in jobs.items():
        for job.attempt in range(1, 1 + int(sys.argv[3])):
            planned[name].append([job.resources.get(key) for key in ("mem_mb", "runtime")])
    print(json.dumps(planned))
"""


def planned(workflow, study, cores, attempts=0):
    """Threads and priority of the jobs, by rule, and memory and minutes of each attempt."""
    printed = workflow.call("python", "-c", PLANNED, study, str(cores), str(attempts))
    return json.loads(next(line for line in printed.splitlines() if line.startswith("{")))


@pytest.mark.slow
@pytest.mark.parametrize(("cores", "alone", "of_two"), [(1, 1, 1), (4, 4, 2)])
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
    limits = "pool: {gpus: 0, mem_mb: 1000, minutes: 60"
    assert default in (done.folder / "params.yaml").read_text()
    done.edit("params.yaml", limits, limits + ", threads: 2")
    assert done.planned_jobs("--cores", "4") == {}


@pytest.mark.slow
def test_what_a_retry_asks_for_grows_up_to_the_limits_of_one_partition(fresh):
    """An evaluation of SmolLM2 asks for 6 GB and an hour first."""
    site = fresh.folder / "profiles/slurm/site.yaml"
    before = site.read_text()
    cases = {
        "{}": [[6000, 60], [12_000, 120], [24_000, 240], [48_000, 480]],
        # Of two partitions that take it, the one of longer jobs.
        "{small: {max_mem_mb: 5000}, short: {max_runtime: 60},"
        " long: {max_runtime: '03:00:00', max_mem_mb: 20000}}": [
            [6000, 60],
            [12_000, 120],
            [20_000, 180],
            [20_000, 180],
        ],
        # None takes it: the first request stays, and the doctor has said so.
        "{short: {max_runtime: 30}}": [[6000, 60]] * 4,
    }
    for partitions, expected in cases.items():
        site.write_text(before.replace("partitions: {}", f"partitions: {partitions}"))
        jobs = planned(fresh, "smollm2", 1, attempts=4)
        assert jobs["evaluate"][2:] == expected, partitions
    site.write_text(before)


TWO_LARGE_JOBS = """
rule all:
    input: "0.txt", "1.txt"

rule large:
    output: "{number}.txt"
    resources: mem_mb=10**7
    shell: "echo begins >> log; sleep 1; echo ends >> log; touch {output}"
"""


@pytest.mark.slow
def test_two_jobs_larger_than_this_machine_run_one_after_the_other(root, tmp_path):
    """Here each asks for ten terabytes; both would begin at once without profile local's limit."""
    (tmp_path / "Snakefile").write_text(TWO_LARGE_JOBS)
    command = [sys.executable, "-m", "snakemake", "--profile", root / "profiles/local"]
    subprocess.run([*command, "--cores", "2"], cwd=tmp_path, check=True, capture_output=True)
    assert (tmp_path / "log").read_text().split() == ["begins", "ends"] * 2
