"""Programs of rules on a pretended GPU, in a process that was started with its library.

    python rules.py FOLDER

FOLDER/calls.json has programs of `geosd.cli`, in turn, with their arguments by name. Of each,
FOLDER/found.json says where its forward passes were computed, and which kernels mixed devices.
"""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path

import torch
from gpu_tensors import CUDA, RECORD, PretendedGpu  # before geosd

from geosd.cli import alignment, states, token_probabilities
from geosd.sampling import engines

PLAIN = {"study", "model", "variant", "seed"}
"""Arguments that are no paths."""


def argument(name: str, value: str | int | list[str]) -> object:
    """An argument of a program: a path or several, or what is no path as it is."""
    if name in PLAIN:
        return value
    if isinstance(value, list):
        return tuple(Path(each) for each in value)
    return Path(value)


def main(folder: Path) -> None:
    """Run all programs."""
    torch.set_num_threads(1)
    for module in (alignment, engines, states, token_probabilities):
        module.job_device = lambda: CUDA
    devices = set()
    torch.nn.modules.module.register_module_forward_pre_hook(
        lambda module, _: devices.update(str(p.device) for p in module.parameters(recurse=False))
    )
    found = {}
    for name, given in json.loads((folder / "calls.json").read_text()).items():
        devices.clear()
        RECORD.empty()
        arguments = {key: argument(key, each) for key, each in given.items()}
        with PretendedGpu():
            importlib.import_module(f"geosd.cli.{name}").main(**arguments)
        mixed = [f"{kernel} at {place}" for kernel, place in RECORD.mixed]
        found[name] = {"devices": sorted(devices), "mixed": mixed}
    (folder / "found.json").write_text(json.dumps(found))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
