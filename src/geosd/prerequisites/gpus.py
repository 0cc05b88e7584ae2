"""Whether the GPUs that a study's jobs ask for are there: on this machine, or in a SLURM job."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from geosd.prerequisites.check import Check


def check_local_gpus(requested: int, visible: int) -> Check:
    """Compare the GPUs of this machine with those of the study's largest job.

    Args:
        requested: GPUs of that job.
        visible: GPUs that a process may use here (`node_report.visible_gpus`).
    """
    found = f"this machine shows {visible}; the largest job asks for {requested}"
    if visible < requested:
        cure = "run the study on a cluster, `snakemake --profile slurm`: docs/cluster.md"
        return Check("GPUs", "missing", found, cure)
    return Check("GPUs", "ok", found)


def check_job_gpus(partition: str, requested: int, report: Mapping[str, Any]) -> Check:
    """Compare the GPUs that a job of a partition saw with those that it asked for.

    Args:
        partition: Name of the partition.
        requested: GPUs of the job.
        report: What `node_report` printed in the job.
    """
    subject, usable = f"GPUs of a job of {partition}", report["torch"]
    found = f"{report['host']} shows {report['gpus']} of {requested}"
    if report["gpus"] != requested:
        cure = "compare profiles/slurm/site.yaml with `sinfo -o '%P %G'`"
        return Check(subject, "missing", found, cure)
    if usable is not None and len(usable) < requested:
        cure = "torch is built for a newer driver, or `nvidia-smi` fails on the node too"
        return Check(subject, "missing", f"{found}; torch can use {len(usable)}", cure)
    names = ", ".join(sorted(set(usable or [])))
    return Check(subject, "ok", found + (f": {names}" if names else ""))
