"""Whether this machine has the files, the disk space, the hub and the GPUs that a study needs."""

import os
import textwrap
import urllib.error
import urllib.request
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

TB = 1e12
TIMEOUT_S = 10.0


class Check(NamedTuple):
    """The outcome of one check: what was looked at and found, and what to do where it is not `ok`.

    A study cannot do without what is `missing`; nobody could see what is `unknown`.
    """

    subject: str
    state: Literal["ok", "missing", "unknown"]
    found: str
    cure: str = ""


def report(checks: Sequence[Check]) -> str:
    """Each check in 80 columns, its state first, and the cure below what is not ok.

    Example:
        >>> print(report([Check("disk", "ok", "9 TB free")]))
        ok       disk: 9 TB free
    """
    lines, wraps = [], {"break_long_words": False, "break_on_hyphens": False}
    for check in checks:
        words = f"{check.state:8} {check.subject}: {check.found}"
        lines.append(textwrap.fill(words, 80, subsequent_indent=" " * 9, **wraps))
        if check.state != "ok":  # a line by itself, however long: its command can be copied
            lines.append(f"{' ' * 9}Hint: {check.cure}")
    return "\n".join(lines)


def missing(checks: Sequence[Check]) -> list[str]:
    """The subjects of the checks that found something missing."""
    return [check.subject for check in checks if check.state == "missing"]


def check_raw_files(
    folder: Path, names: Collection[str], cached: Collection[str], hub_answers: bool
) -> Check:
    """Look for the raw files of a data set: in their folder, in the hub's cache, or on the hub.

    They belong into `folder` (`data.raw`); rule `fetch` takes from the hub what its cache lacks.
    """
    absent = [name for name in names if not (folder / name).is_file()]
    fetched = [name for name in absent if name not in cached]
    if fetched and not hub_answers:
        return Check(
            "raw files",
            "missing",
            f"neither {folder} nor the hub's cache has {', '.join(fetched)}, and the hub does not"
            " answer",
            f"copy the files into {folder}; docs/problems.md lists them",
        )
    origins = {
        "in the folder": len(names) - len(absent),
        "in the hub's cache": len(absent) - len(fetched),
        "on the hub, which answers": len(fetched),
    }
    counts = ", ".join(f"{count} {where}" for where, count in origins.items() if count)
    return Check("raw files", "ok", f"{counts} ({folder})")


def check_checkpoint(
    model: str, repo: str, revision: str, cached: bool, hub_answers: bool, on_nodes: bool
) -> Check:
    """Look for a released checkpoint, whole, in the hub's cache, or else for the hub.

    Whether a compute node, which reads it where `on_nodes`, reaches the hub is not known here.
    """
    subject = f"checkpoint of {model}"
    if cached:
        return Check(subject, "ok", f"{repo} is in the hub's cache")
    if hub_answers and not on_nodes:
        return Check(subject, "ok", f"{repo} is not in the hub's cache; the hub answers")
    return Check(
        subject,
        "missing",
        f"{repo} is not in the hub's cache" + (", which a compute node reads" * on_nodes),
        f"hf download {repo} --revision {revision}, with HF_HOME in a folder that all nodes see",
    )


def check_cache(cache: Path, token: bool, on_nodes: bool) -> Check:
    """Say where the hub's cache lies, and whether there is a token.

    The home folder is often too small for checkpoints, and not every cluster shares it.
    """
    words = "a token is set" if token else "no token: public repositories need none"
    found = f"{cache}; {words}"
    if on_nodes and cache.is_relative_to(Path.home()):
        cure = "export HF_HOME=/a/shared/folder, unless all nodes see your home and it has the room"
        return Check("hub's cache", "unknown", f"{found}; it lies in your home", cure)
    return Check("hub's cache", "ok", found)


def bytes_below(folders: Iterable[Path]) -> int:
    """Bytes of all files below some folders, those that do not exist left out."""
    return sum(
        (Path(parent) / name).lstat().st_size
        for folder in folders
        for parent, _, names in os.walk(folder)
        for name in names
    )


def check_disk(folder: Path, free: int, planned: float, written: int) -> Check:
    """Compare the free bytes in the folder of results with those still to be written of a study.

    A quota counts only where the file system reports it as free space.
    """
    needed = max(0.0, planned - written)
    found = f"{free / TB:.2f} TB free at {folder}; {needed / TB:.2f} TB still to be written"
    if free < needed:
        cure = "make room, or link results/ and scratch/ to a larger disk that all nodes see"
        return Check("disk", "missing", found, cure)
    return Check("disk", "ok", f"{found}. A quota: `quota -s`, `lfs quota -h .`")


def hub_answers(endpoint: str, offline: bool, timeout_s: float = TIMEOUT_S) -> bool:
    """Whether a request to the hub's address gets an answer; none is made offline."""
    if offline:
        return False
    request = urllib.request.Request(endpoint, method="HEAD")
    try:
        with urllib.request.urlopen(request, timeout=timeout_s):
            return True
    except urllib.error.HTTPError:
        return True
    except OSError:
        return False


def check_local_gpus(requested: int, visible: int) -> Check:
    """Compare the GPUs that a process may use here with those of the study's largest job."""
    found = f"this machine shows {visible}; the largest job asks for {requested}"
    if visible < requested:
        cure = "run the study on a cluster, `snakemake --profile slurm`: docs/cluster.md"
        return Check("GPUs", "missing", found, cure)
    return Check("GPUs", "ok", found)


def check_job_gpus(partition: str, requested: int, report: Mapping[str, Any]) -> Check:
    """Compare the GPUs that `node_report` saw in a job of a partition with those asked for."""
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
