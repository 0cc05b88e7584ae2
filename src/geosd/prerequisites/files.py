"""Whether raw files, checkpoints and disk space are there for a study."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable
from pathlib import Path

from geosd.prerequisites.check import Check

TB = 1e12


def check_raw_files(
    folder: Path, names: Collection[str], cached: Collection[str], hub_answers: bool
) -> Check:
    """Look for the raw files of a data set: in their folder, in the hub's cache, or on the hub.

    Args:
        folder: Where they belong (`data.raw`).
        names: Their names in that folder.
        cached: Those of them that the hub's cache holds.
        hub_answers: Whether this machine reaches the hub, from which rule `fetch` takes the rest.
    """
    absent = [name for name in names if not (folder / name).is_file()]
    fetched = [name for name in absent if name not in cached]
    if fetched and not hub_answers:
        return Check(
            "raw files",
            "missing",
            f"neither {folder} nor the hub's cache has {', '.join(fetched)}, and the hub does not"
            " answer",
            f"copy the files into {folder}; docs/data.md lists them",
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
    """Look for a released checkpoint in the hub's cache, or else for the hub.

    Args:
        model: Name of the model.
        repo: `owner/name` of the hub.
        revision: Commit.
        cached: Whether the hub's cache holds the checkpoint whole.
        hub_answers: Whether this machine reaches the hub.
        on_nodes: Whether a compute node reads it; whether a node reaches the hub is not known here.
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

    Args:
        cache: The hub's cache.
        token: Whether the hub's client finds a token.
        on_nodes: Whether compute nodes read the cache.
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
    """Compare the free disk space with what a study keeps.

    A quota counts only where the file system reports it as free space.

    Args:
        folder: The folder of the results.
        free: Free bytes there.
        planned: Bytes that the plan says the study keeps.
        written: Bytes of the study's results that exist.
    """
    needed = max(0.0, planned - written)
    found = f"{free / TB:.2f} TB free at {folder}; {needed / TB:.2f} TB still to be written"
    if free < needed:
        cure = "make room, or link results/ and scratch/ to a larger disk that all nodes see"
        return Check("disk", "missing", found, cure)
    return Check("disk", "ok", f"{found}. A quota: `quota -s`, `lfs quota -h .`")
