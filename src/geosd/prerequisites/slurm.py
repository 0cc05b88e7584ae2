"""Whether SLURM takes a study's jobs, and what a job of each partition sees on its node."""

import json
import logging
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import yaml

from geosd.prerequisites import node_report
from geosd.prerequisites.checks import PrerequisiteCheck

WAIT_S = 60
"""Seconds that a job of a check may wait for a node."""
CLOCK_S = 2.0
"""Seconds by which a node's clock may differ: Snakemake compares times of files."""


class SlurmRequest(NamedTuple):
    """A rule's request to SLURM: GPUs and memory in MB of a node, minutes, CPU threads.

    `nodes` is how many nodes a job is spread over.
    """

    gpus: int
    mem_mb: int
    minutes: int
    threads: int
    nodes: int = 1


class SlurmSite(NamedTuple):
    """Names of a cluster (profiles/slurm/site.yaml)."""

    account: str | None
    gpu_model: str | None
    cpus_per_gpu: int
    jobs: int
    trainings: int
    check_seconds: int
    max_minutes: int
    partitions: Mapping[str, Any]


def read_slurm_site(file: Path) -> SlurmSite:
    """Read what a cluster calls things (profiles/slurm/site.yaml)."""
    known = yaml.safe_load(file.read_text(encoding="utf-8"))
    return SlurmSite(**{name: known[name] for name in SlurmSite._fields})


def run_slurm(*command: str, timeout_s: float = 120) -> subprocess.CompletedProcess[str]:
    """Run a command of SLURM, whatever its exit status; one that does not end has status 124."""
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=timeout_s)
    except subprocess.TimeoutExpired:
        return subprocess.CompletedProcess(command, 124, "", f"no answer within {timeout_s} s")


def cluster_settings(listing: str) -> dict[str, str]:
    """The settings of a cluster: name -> value, from what `scontrol show config` prints."""
    pairs = (line.partition("=") for line in listing.splitlines() if "=" in line)
    return {name.strip(): value.strip() for name, _, value in pairs}


def check_slurm_settings(
    values: Mapping[str, str], site: SlurmSite, gpus: int
) -> list[PrerequisiteCheck]:
    """Hold a cluster's settings to what the profile relies on; `gpus` are the largest job's."""
    checks = []
    if gpus and "gpu" not in values.get("GresTypes", "").split(","):
        found = f"GresTypes is {values.get('GresTypes')!r}, without gpu"
        checks.append(
            PrerequisiteCheck("SLURM's GPUs", "missing", found, "ask the cluster's administrators")
        )
    # "300 sec"
    age = int(values["MinJobAge"].split()[0])
    found = f"a job is remembered for {age} s; it is looked for after {site.check_seconds} s"
    cure = f"check_seconds: {max(1, age // 3)} in profiles/slurm/site.yaml"
    checks.append(
        PrerequisiteCheck.of("SLURM's memory of jobs", 3 * site.check_seconds <= age, found, cure)
    )
    if values.get("JobRequeue") == "1":
        checks.append(PrerequisiteCheck("SLURM's requeueing", "ok", "on"))
    else:
        cure = "none is needed: a preempted job fails, and Snakemake submits it anew"
        checks.append(PrerequisiteCheck("SLURM's requeueing", "unknown", "JobRequeue is off", cure))
    return checks


def check_partitions(named: Sequence[str], existing: Sequence[str]) -> PrerequisiteCheck:
    """Compare the partitions of site.yaml with the cluster's."""
    absent = ", ".join(name for name in named if name not in existing)
    found = f"{absent}: no partition of this cluster" if absent else ", ".join(named or existing)
    cure = f"profiles/slurm/site.yaml; allowed are {', '.join(existing)}"
    return PrerequisiteCheck.of("partitions", not absent, found, cure)


def choose_partition(request: SlurmRequest, site: SlurmSite, file: Path) -> str | None:
    """The partition to which Snakemake's SLURM plugin would submit a job; None for the default one.

    The plugin reads the file of the site itself.
    """
    from snakemake_executor_plugin_slurm.partitions import get_best_partition, read_partition_file

    resources: dict[str, Any] = {
        "mem_mb": request.mem_mb,
        "runtime": request.minutes,
        "nodes": request.nodes,
    }
    if request.nodes > 1:
        resources |= {"gres": _gres(request, site), "cpus_per_gpu": site.cpus_per_gpu}
    elif request.gpus:
        resources |= {"gpu": request.gpus, "cpus_per_gpu": site.cpus_per_gpu}
        if site.gpu_model:
            resources["gpu_model"] = site.gpu_model
    job = SimpleNamespace(name="doctor", threads=request.threads, resources=resources)
    logger = logging.getLogger("geosd.prerequisites.partition")
    logger.disabled = True
    return get_best_partition(read_partition_file(file), job, logger)


def check_slurm_fits(
    requests: Mapping[SlurmRequest, Sequence[str]], site: SlurmSite, file: Path
) -> list[PrerequisiteCheck]:
    """Hold each request (-> the models and rules whose it is) to the partitions that are named.

    Without any named, the cluster's default partition takes all, and none is checked.
    """
    if not site.partitions:
        return []
    partitions = []
    for name, limits in site.partitions.items():
        words = [f"{key} {limit}" for key, limit in limits.items()]
        partitions.append(f"{name}: {', '.join(words) or 'no GPU'}")
    checks = []
    for request, rules in requests.items():
        subject = f"partition of {', '.join(rules)}"
        partition = choose_partition(request, site, file)
        if partition:
            checks.append(PrerequisiteCheck(subject, "ok", partition))
            continue
        found = f"{_words(request)} fit none of {'; '.join(partitions)}"
        cure = f"max_minutes and partitions of {file}, or resources of params.yaml"
        checks.append(PrerequisiteCheck(subject, "missing", found, cure))
    return checks


def slurm_options(request: SlurmRequest, site: SlurmSite, partition: str | None) -> list[str]:
    """The options of sbatch and srun for a job, as Snakemake's plugin gives them."""
    tasks = "--ntasks=1" if request.nodes == 1 else "--ntasks-per-node=2"
    words = [f"--nodes={request.nodes}", tasks]
    words += [f"--mem={request.mem_mb}", f"--time={request.minutes}"]
    if partition:
        words.append(f"--partition={partition}")
    if site.account:
        words.append(f"--account={site.account}")
    if not request.gpus:
        return [*words, f"--cpus-per-task={request.threads}"]
    if request.nodes > 1:
        return [*words, f"--gres={_gres(request, site)}", f"--cpus-per-gpu={site.cpus_per_gpu}"]
    model = f"{site.gpu_model}:" if site.gpu_model else ""
    return [*words, f"--gpus={model}{request.gpus}", f"--cpus-per-gpu={site.cpus_per_gpu}"]


def _gres(request: SlurmRequest, site: SlurmSite) -> str:
    """The GPUs of each node of a job on several, as the rule `train` asks for them."""
    if site.gpu_model:
        return f"gpu:{site.gpu_model}:{request.gpus}"
    return f"gpu:{request.gpus}"


def _words(request: SlurmRequest) -> str:
    words = f"{request.gpus} GPUs, {request.mem_mb} MB, {request.minutes} min"
    return words + (f" on each of {request.nodes} nodes" if request.nodes > 1 else "")


def check_slurm_request(
    rules: str, request: SlurmRequest, site: SlurmSite, partition: str | None
) -> PrerequisiteCheck:
    """Ask SLURM whether it would take a job (`sbatch --test-only`); none is submitted.

    `rules` are the models and rules of the jobs; a partition of None is the default one.
    """
    named = f"partition {partition}" if partition else "the default one"
    where = f"{_words(request)} on {named}"
    done = run_slurm(
        "sbatch", "--test-only", *slurm_options(request, site, partition), "--wrap=true"
    )
    said = " ".join(done.stderr.split()) if done.returncode else "taken"
    cure = "profiles/slurm/site.yaml (partitions), or params.yaml (resources)"
    return PrerequisiteCheck.of(f"jobs {rules}", not done.returncode, f"{where}: {said}", cure)


def slurm_node_report(
    request: SlurmRequest, site: SlurmSite, partition: str | None, folder: Path, file: Path
) -> tuple[dict[str, Any] | None, str]:
    """Run `node_report` in a small job with the GPUs of a partition's largest job.

    The node is to read the text of a file in the project's folder.

    Returns:
        The report with `asked_at` and `told_at`, this machine's times before and after; None where
        there is none. The words of srun.
    """
    small = request._replace(mem_mb=4000, minutes=5, threads=1, nodes=1)
    program = [sys.executable, "-P", node_report.__file__, str(file)]
    words = ["--quiet", f"--immediate={WAIT_S}", f"--chdir={folder}", "--job-name=geosd-doctor"]
    asked_at = time.time()
    done = run_slurm(
        "srun", *words, *slurm_options(small, site, partition), *program, timeout_s=WAIT_S + 300
    )
    printed = done.stdout.splitlines()
    if done.returncode or not printed:
        return None, " ".join(done.stderr.split())
    return {**json.loads(printed[-1]), "asked_at": asked_at, "told_at": time.time()}, ""


def check_slurm_folder(partition: str, report: Mapping[str, Any], text: str) -> PrerequisiteCheck:
    """Whether a node reads in the project's folder what this machine wrote there."""
    same = report["text"] == text
    found = f"{report['host']} {'reads' if same else 'does not see'} what this machine wrote"
    cure = "clone onto a file system that all nodes mount under the same path"
    return PrerequisiteCheck.of(f"shared folder on {partition}", same, found, cure)


def check_slurm_clock(partition: str, report: Mapping[str, Any]) -> PrerequisiteCheck:
    """Compare a node's clock with this machine's: it must lie between request and answer."""
    early, late = report["asked_at"] - report["time"], report["time"] - report["told_at"]
    difference = max(early, late, 0.0)
    found = f"{report['host']} differs by {difference:.1f} s at least"
    cure = "ask the cluster's administrators for one time on all nodes (NTP, chrony)"
    return PrerequisiteCheck.of(f"clock on {partition}", difference <= CLOCK_S, found, cure)


def check_slurm_gpus(
    partition: str, requested: int, report: Mapping[str, Any]
) -> PrerequisiteCheck:
    """Compare the GPUs that `node_report` saw in a job of a partition with those asked for."""
    subject, usable = f"GPUs of a job of {partition}", report["torch"]
    found = f"{report['host']} shows {report['gpus']} of {requested}"
    if report["gpus"] != requested:
        cure = "compare profiles/slurm/site.yaml with `sinfo -o '%P %G'`"
        return PrerequisiteCheck(subject, "missing", found, cure)
    if usable is not None and len(usable) < requested:
        cure = "torch is built for a newer driver, or `nvidia-smi` fails on the node too"
        return PrerequisiteCheck(subject, "missing", f"{found}; torch can use {len(usable)}", cure)
    names = ", ".join(sorted(set(usable or [])))
    return PrerequisiteCheck(subject, "ok", found + (f": {names}" if names else ""))
