"""
What a driver does before its first job, and at the end of a dry run.
"""

import atexit
import json
import os
import shutil
import subprocess
import sys
import tempfile

from snakemake.exceptions import WorkflowError

from geosd.gpu_leases import cards_of_machine


def check_prerequisites():
    """Before the first job: what the jobs that ask for GPUs need, unless it is there already.

    A job that finds out by itself has waited in the queue for hours. Of other jobs the problems and
    prompts are looked at, where files or a tokenizer of somebody else may not fit the study.
    """
    needed = list(workflow.dag.needrun_jobs())
    jobs = [job for job in needed if job.resources.get("gpu")]
    if workflow.touch:
        return
    command = [sys.executable, "-m", "geosd", "doctor", "--study", STUDY.name, "--no-probe"]
    if not jobs:
        if not {"data", "pool"} & {job.rule.name for job in needed}:
            return
        from geosd.cli.study_inputs import study_inputs_need_check

        if not study_inputs_need_check(STUDY):
            return
        command.append("--only-inputs")
    else:
        executor = "local" if workflow.local_exec else "slurm"
        models = sorted({job.wildcards.model for job in jobs})
        command += ["--executor", executor, "--models", *models]
    if subprocess.run(command).returncode and not ALLOW_MISSING:
        raise WorkflowError(
            f"No job was started: study {STUDY.name} lacks what the lines above name.\nHint: put it in"
            " place, or start all the same: --config study=NAME allow_missing=true."
        )


def bound_gpus_of_this_machine():
    """Start no more jobs than there are GPUs for: each takes its own, and waits for them (launch.py).

    The bound is the scheduler's, which looks at the sum. One of `--resources` would cut a job's
    request down to itself; what is too much for the machine is said by name, before the first job.
    """
    bounds = workflow.scheduler.global_resources
    asked = max((job.resources.get("gpu", 0) for job in workflow.dag.needrun_jobs()), default=0)
    if workflow.local_exec and asked and "gpu" not in bounds:
        bounds["gpu"] = max(asked, len(cards_of_machine(os.environ)))
        workflow.scheduler.resources["gpu"] = bounds["gpu"]


onstart:
    # Its limit of submissions a second, 100, makes Snakemake 9.27 look at the ready jobs again a
    # second after each look. Every job that ends adds a look, and none goes away while jobs are
    # ready: after 128 jobs the looks took almost half a core.
    workflow.scheduler.job_rate_limiter = None
    # Jobs that a killed driver left in SLURM's queue write the files that this one's jobs will write.
    shell("python workflow/slurm/orphaned_jobs.py")
    keep_configuration()
    check_prerequisites()
    bound_gpus_of_this_machine()
    # By it `make stop` knows jobs that outlive this process.
    os.environ |= {"GEOSD_DRIVER": str(os.getpid())}
    # On this machine programs are forked with torch loaded (geosd.cli.forkserver): its servers lie
    # in this folder, and end with this process. A job of SLURM must not run in another one's processes.
    # Nor may a job in a container.
    if workflow.local_exec and not workflow.deployment_settings.deployment_method:
        servers = tempfile.mkdtemp(prefix="geosd-")
        os.environ |= {"GEOSD_FORKSERVER": servers, "GEOSD_FORKSERVER_OWNER": str(os.getpid())}
        atexit.register(shutil.rmtree, servers, ignore_errors=True)


onsuccess:
    say_edits()


onerror:
    say_edits()
    # Ctrl-C: while Snakemake asks SLURM how its jobs are, its list of them is empty, and those that
    # it should cancel run on without a driver.
    shell(f"python workflow/slurm/orphaned_jobs.py --driver {os.getpid()}")


@atexit.register
def hand_on_planned_jobs():
    """After a dry run: its jobs, for the `geosd plan` that asked for them, or for a new one.

    A new one is started where the study asks for GPUs. A job is as
    geosd.cli.snakemake_runs.SnakemakeJob has it.
    """
    file = os.environ.get("GEOSD_PLANNED_JOBS")
    on_gpus = any(STUDY.resources_of(model).job("train").gpus for model in STUDY.models)
    if not (workflow.dryrun and workflow.dag is not None and (file or on_gpus)):
        return
    jobs = [*workflow.dag.needrun_jobs(exclude_finished=False)]
    jobs.sort(key=lambda job: (job.rule.name, *job.output))
    number = {job: i for i, job in enumerate(jobs)}
    planned = [
        [
            job.rule.name,
            job.wildcards.get("model", ""),
            job.priority,
            job.rule.norun or job.rule.name in workflow._localrules,
            [number[needed] for needed in workflow.dag.dependencies[job] if needed in number],
        ]
        for job in jobs
    ]
    with tempfile.TemporaryDirectory() as folder:
        written = Path(file or f"{folder}/jobs.json")
        written.write_text(json.dumps(planned))
        if not file:
            command = [sys.executable, "-m", "geosd", "plan", "--study", STUDY.name]
            subprocess.run([*command, "--planned", str(written)])
