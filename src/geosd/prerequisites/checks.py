"""A check's result, and the checks of this machine: packages, files, disk, hub and GPUs."""

import importlib.metadata
import textwrap
import urllib.error
import urllib.request
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Literal, NamedTuple

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

GB, TB = 1e9, 1e12
TIMEOUT_S = 10.0
SHOWN = 5
"""Packages that a line names; it counts the others."""


class PrerequisiteCheck(NamedTuple):
    """The outcome of one check: what was looked at and found, and what to do where it is not `ok`.

    A study cannot do without what is `missing`; nobody could see what is `unknown`; a `note` is no
    fault, and perhaps not what was meant.
    """

    subject: str
    state: Literal["ok", "missing", "unknown", "note"]
    found: str
    cure: str = ""

    @classmethod
    def of(cls, subject: str, holds: object, found: str, cure: str) -> "PrerequisiteCheck":
        """A check that is `ok` where what it looks for holds, and else `missing`."""
        return cls(subject, "ok", found) if holds else cls(subject, "missing", found, cure)


def report_checks(checks: Sequence[PrerequisiteCheck]) -> str:
    """Each check in 80 columns, its state first, and the cure below what is not ok.

    Example:
        >>> print(report_checks([PrerequisiteCheck("disk", "ok", "9 TB free")]))
        ok       disk: 9 TB free
    """
    lines, wraps = [], {"break_long_words": False, "break_on_hyphens": False}
    for check in checks:
        words = f"{check.state:8} {check.subject}: {check.found}"
        lines.append(textwrap.fill(words, 80, subsequent_indent=" " * 9, **wraps))
        if check.cure:  # a line by itself, however long: its command can be copied
            lines.append(f"{' ' * 9}Hint: {check.cure}")
    return "\n".join(lines)


def missing_by_checks(checks: Sequence[PrerequisiteCheck]) -> list[str]:
    """The subjects of the checks that found something missing."""
    return [check.subject for check in checks if check.state == "missing"]


def locked_versions_to_check(lock: Path) -> dict[str, str]:
    r"""The pins of a lock: canonical name -> version, without hashes.

    A pin is a line `name==version`, in the form that pip and uv write: hashes follow on lines of
    their own, after a backslash.

    Raises:
        ValueError: A line pins no version; the message names it.
    """
    pins = {}
    for number, line in enumerate(lock.read_text(encoding="utf-8").splitlines(), 1):
        text = line.partition(" #")[0].rstrip("\\ ")
        if not text or text.startswith(("#", " ")):
            continue
        requirement = Requirement(text)
        [*specifiers] = requirement.specifier
        if [one.operator for one in specifiers] != ["=="]:
            raise ValueError(
                f"{lock}:{number}: {text!r} pins no version; allowed is name==version.\n"
                "Hint: `make pins` and `make pins-gpu` write the locks."
            )
        pins[canonicalize_name(requirement.name)] = specifiers[0].version
    return pins


def installed_versions_to_check() -> dict[str, str]:
    """The packages of this interpreter: canonical name -> version."""
    return {
        canonicalize_name(package.metadata["Name"]): package.version
        for package in importlib.metadata.distributions()
    }


def check_lock(
    lock: str,
    pins: Mapping[str, str],
    installed: Mapping[str, str],
    needed: Collection[str],
    cure: str,
) -> PrerequisiteCheck:
    """Compare the installed packages with a lock.

    A local label (`2.13.0+cpu`) is the same version: it says how the package was built. The needed
    packages must be there; any other pin counts only where it is installed.
    """
    subject = f"packages of {lock}"
    absent = sorted(name for name in needed if name not in installed)
    other = sorted(
        f"{name} {installed[name]} (locked: {version})"
        for name, version in pins.items()
        if name in installed and Version(installed[name]).public != Version(version).public
    )
    faults = [f"not installed: {_some(absent)}"] if absent else []
    faults += [f"another version: {_some(other)}"] if other else []
    found = "; ".join(faults) or f"{len(pins.keys() & installed.keys())} at the locked versions"
    return PrerequisiteCheck.of(subject, not faults, found, cure)


def check_package(
    names: Collection[str], installed: Mapping[str, str], purpose: str, cure: str
) -> PrerequisiteCheck:
    """Look for a package that a study needs for a purpose; one of the names is enough."""
    usual = next(iter(names))
    there = [f"{name} {installed[name]}" for name in names if name in installed]
    found = f"{there[0]}, for {purpose}" if there else f"not installed; {purpose} needs it"
    return PrerequisiteCheck.of(usual, there, found, cure)


def _some(names: list[str]) -> str:
    more = len(names) - SHOWN
    return ", ".join(names[:SHOWN]) + (f" and {more} more" if more > 0 else "")


def check_raw_file_prerequisite(
    folder: Path, names: Collection[str], cached: Collection[str], hub_answers: bool
) -> PrerequisiteCheck:
    """Look for the raw files of a data set: in their folder, in the hub's cache, or on the hub.

    They belong into `folder` (`data.raw`); rule `fetch` takes from the hub what its cache lacks.
    """
    absent = [name for name in names if not (folder / name).is_file()]
    fetched = [name for name in absent if name not in cached]
    if fetched and not hub_answers:
        return PrerequisiteCheck(
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
    return PrerequisiteCheck("raw files", "ok", f"{counts} ({folder})")


def check_checkpoint_prerequisite(
    model: str,
    repo: str,
    revision: str,
    cached: bool,
    hub_answers: bool,
    on_nodes: bool,
    file: str | None = None,
) -> PrerequisiteCheck:
    """Look for a released checkpoint, whole, in the hub's cache, or else for the hub.

    `file` is the one of the repository that is the checkpoint; None where it is all of it. Whether
    a compute node, which reads it where `on_nodes`, reaches the hub is not known here.
    """
    subject = f"checkpoint of {model}"
    if cached:
        return PrerequisiteCheck(subject, "ok", f"{repo} is in the hub's cache")
    if hub_answers and not on_nodes:
        return PrerequisiteCheck(
            subject, "ok", f"{repo} is not in the hub's cache; the hub answers"
        )
    words = [repo, file] if file else [repo]
    return PrerequisiteCheck(
        subject,
        "missing",
        f"{repo} is not in the hub's cache" + (", which a compute node reads" * on_nodes),
        f"hf download {' '.join(words)} --revision {revision}, with HF_HOME in a folder that all"
        " nodes see",
    )


def check_hub_cache(cache: Path, token: bool, on_nodes: bool) -> PrerequisiteCheck:
    """Say where the hub's cache lies, and whether there is a token.

    The home folder is often too small for checkpoints, and not every cluster shares it.
    """
    words = "a token is set" if token else "no token: public repositories need none"
    found = f"{cache}; {words}"
    if on_nodes and cache.is_relative_to(Path.home()):
        cure = "export HF_HOME=/a/shared/folder, unless all nodes see your home and it has the room"
        return PrerequisiteCheck("hub's cache", "unknown", f"{found}; it lies in your home", cure)
    return PrerequisiteCheck("hub's cache", "ok", found)


def check_disk(folder: Path, free: int, planned: float, written: int) -> PrerequisiteCheck:
    """Compare the free bytes in the folder of results with those still to be written of a study.

    A quota counts only where the file system reports it as free space.
    """
    needed = max(0.0, planned - written)
    found = f"{free / TB:.2f} TB free at {folder}; {needed / TB:.2f} TB still to be written"
    cure = "make room, or link results/ and scratch/ to a larger disk that all nodes see"
    return PrerequisiteCheck.of(
        "disk", free >= needed, f"{found}. A quota: `quota -s`, `lfs quota -h .`", cure
    )


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


def check_local_gpus(requested: int, visible: int, on_login_node: bool) -> PrerequisiteCheck:
    """Compare the GPUs that jobs may use here with those of the study's largest job.

    The hint leads to the page of this machine: a laptop, one GPU, a server of several, or the login
    node of a cluster, where SLURM answers.
    """
    found = f"this machine shows {visible}; the largest job asks for {requested}"
    if on_login_node:
        cure = "this cluster's nodes have them: `snakemake --profile slurm`, docs/cluster.md"
    elif visible == 0:
        cure = "studies without a GPU: docs/quickstart.md; on a cluster: docs/cluster.md"
    elif visible == 1:
        cure = "studies for one GPU: docs/gpu.md; on a cluster: docs/cluster.md"
    else:
        cure = "studies and placements for a server: docs/gpu.md; on a cluster: docs/cluster.md"
    return PrerequisiteCheck.of("GPUs", visible >= requested, found, cure)


def check_gpu_memory(parts: Mapping[str, float], smallest: int | None) -> PrerequisiteCheck:
    """Compare the memory of this machine's smallest GPU with what the plan says that jobs need.

    `parts` are bytes by job; `smallest` is None where nvidia-smi does not say.
    """
    if smallest is None:
        cure = "`geosd plan --study NAME --gpu-gb N` says whether the jobs fit N GB"
        return PrerequisiteCheck("memory of the GPUs", "unknown", "nvidia-smi does not say", cure)
    large = [f"{part} ({need / GB:.0f} GB)" for part, need in parts.items() if need > smallest]
    found = f"{smallest / GB:.0f} GB"
    if large:
        found += f" are too few for {', '.join(large)}"
    cure = "studies and placements for smaller GPUs: docs/gpu.md"
    return PrerequisiteCheck.of("memory of the GPUs", not large, found, cure)
