"""
What a job asks for: GPUs, nodes, memory, time and its share of the cores, by params.yaml and the site.

All of it is resources or threads, so that another request makes no result again.
"""

import math
from functools import cache

from yaml import safe_load  # of the site's file alone

from geosd.config.job_counts import threads_by_job_count

SITE_FILE = Path("profiles/slurm/site.yaml")
SITE = safe_load(SITE_FILE.read_text())


def requested(rule, amount, factor=1):
    """Resource function: what params.yaml requests for a job of a rule and its model.

    A job that takes longer than the site allows is submitted again, and goes on. Each further retry
    requests `factor` times as much, three of them at most, up to the limit of a partition that
    takes the job, and never more time than is allowed.
    """

    def of_attempt(wildcards, attempt):
        job = STUDY.resources_of(wildcards.model).job(rule)
        value, limits = getattr(job, amount), {"minutes": SITE["max_minutes"]}
        retry = min(3, max(0, attempt - job.pieces(SITE["max_minutes"])))
        if factor > 1 and retry:
            gpus = job.gpus_per_node if rule == "train" else job.gpus
            first = min(job.minutes, SITE["max_minutes"])
            most = most_requested(gpus, job.mem_mb, first)
            limits = {**most, "minutes": min(SITE["max_minutes"], most["minutes"])}
        return min(value * factor**retry, limits[amount]) if amount in limits else value

    return of_attempt


@cache
def most_requested(gpus, mem_mb, minutes):
    """Memory in MB and minutes that a job may grow to in the partitions of the site.

    Of those that take its first request, the one of the longest jobs; none of them takes more.
    """
    from snakemake_executor_plugin_slurm.partitions import read_partition_file  # takes a second

    limits = [each.limits for each in read_partition_file(SITE_FILE)]
    fitting = [
        (each.max_runtime, each.max_mem_mb)
        for each in limits
        if each.max_gpu >= gpus and each.max_mem_mb >= mem_mb and each.max_runtime >= minutes
    ]
    most = max(fitting, default=(minutes, mem_mb)) if limits else (math.inf, math.inf)
    return dict(zip(("minutes", "mem_mb"), most))


def resources_of(rule):
    """Resources of jobs that run on one node: GPUs, memory in MB and minutes."""
    return {
        "gpu": requested(rule, "gpus"),
        "gpu_model": gpu_model(rule),
        "mem_mb": requested(rule, "mem_mb", 2),
        "runtime": requested(rule, "minutes", 2),
    }


def share_of_cores(rule):
    """Threads function: a job's share of the cores; one training alone takes all that it may."""
    cores = workflow.resource_settings.cores
    memory_mb = workflow.global_resources.get("mem_mb").value  # None without a limit
    return lambda wildcards: threads_by_job_count(rule, STUDY, wildcards.model, cores, memory_mb)


def gpu_model(rule):
    """Resource function: the site's type of GPU, where a rule's job requests a GPU."""
    return lambda wildcards, attempt=1: (
        SITE["gpu_model"] if STUDY.resources_of(wildcards.model).job(rule).gpus else None
    )


def on_one_node(resource):
    """Resource function: a resource of trainings on one node, which others do not have."""
    return lambda wildcards, attempt: (
        resource(wildcards, attempt)
        if STUDY.resources_of(wildcards.model).train.nodes == 1
        else None
    )


def on_several_nodes(resource):
    """Resource function: a resource of trainings on several nodes, which others do not have."""
    return lambda wildcards: (
        resource(wildcards) if STUDY.resources_of(wildcards.model).train.nodes > 1 else None
    )


def gpus_of_each_node(wildcards):
    """Resource function: the GPUs of each node of a training, as SLURM's --gres has them."""
    model, gpus = gpu_model("train")(wildcards), STUDY.resources_of(wildcards.model).train
    return ":".join(["gpu", *([model] if model else []), str(gpus.gpus_per_node)])


def scale(base):
    """Resource that doubles on each of the first three retries."""
    return lambda wildcards, attempt: base * 2 ** min(attempt - 1, 3)
