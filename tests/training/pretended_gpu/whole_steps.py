"""Training steps on a pretended GPU, in a process that was started with its library.

    python whole_steps.py FOLDER

FOLDER/cases.json has the folder of a tiny world, and cases by name: the settings of a training, and
perhaps the name of a fault to plant. Of each, FOLDER/found.json says what its second step did.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any
from unittest import mock

import torch
from gpu_tensors import CUDA, RECORD, PretendedGpu  # before geosd

from geosd.optim import blocks
from geosd.training import loop, measurement, policy, processes
from geosd.training.arguments import training_arguments
from geosd.training.run import RunInputs, assemble_run

ELSEWHERE = ("sampling/", "problems/", "another package")
"""Rooms whose waits are the sampler's, which looks for ended rows as it goes."""


def with_tensor_of_cpu(function: Callable, size_of: Callable[[torch.Tensor], int]) -> Callable:
    """A function whose first argument is multiplied by ones of the CPU: a fault on a GPU."""

    def faulty(first: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
        return function(first * torch.ones(size_of(first)), *args, **kwargs)

    return faulty


FAULTS: dict[str, Callable[[], AbstractContextManager[Any]]] = {
    "loss": lambda: mock.patch.object(
        loop, "mean_loss", with_tensor_of_cpu(loop.mean_loss, lambda loss_N: len(loss_N))
    ),
    "K-FAC": lambda: mock.patch.object(
        blocks,
        "inverse_by_cholesky",
        with_tensor_of_cpu(blocks.inverse_by_cholesky, lambda stack_Mbb: stack_Mbb.shape[-1]),
    ),
    "measurement": lambda: mock.patch.object(
        measurement,
        "in_mismatch_region",
        with_tensor_of_cpu(measurement.in_mismatch_region, lambda q_N1: q_N1.shape[-1] + 1),
    ),
}


def second_step(settings: dict[str, Any], tiny: Path, fault: str | None) -> dict[str, Any]:
    """What the second step of a training gave, and asked of the device."""
    RECORD.empty()
    args = training_arguments(settings)
    files = RunInputs(settings, tiny / "base", tiny / "train.jsonl", tiny / "pool.jsonl", 0)
    with FAULTS[fault]() if fault else nullcontext(), PretendedGpu():
        run = assemble_run(files)
        first = loop.train_step(run, args, 0)
        mixed_before = dict(RECORD.mixed)
        RECORD.empty()
        values = loop.train_step(run, args, 1)
    waits = {
        f"{name} at {place}": count
        for (name, place), count in RECORD.waits.items()
        if not place.startswith(ELSEWHERE)
    }
    mixed = [f"{name} at {place}" for name, place in {**mixed_before, **RECORD.mixed}]
    return {
        "losses": [first["loss/total"], values["loss/total"]],
        "device": str(next(run.student.parameters()).device),
        "mixed": mixed,
        "waits": waits,
        "kernels": RECORD.kernels,
    }


def main(folder: Path) -> None:
    """Take the steps of all cases, one after another."""
    torch.set_num_threads(1)
    for module in (processes, policy):
        module.training_process_device = lambda: CUDA
    given = json.loads((folder / "cases.json").read_text())
    found = {}
    for name, case in given["cases"].items():
        found[name] = second_step(case["settings"], Path(given["tiny"]), case["fault"])
    (folder / "found.json").write_text(json.dumps(found))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
