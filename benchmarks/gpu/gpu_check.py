"""Check a CUDA machine: its numerics, vLLM's weights, and updates at the paper's sizes.

Needs torch, transformers and accelerate, and no network; models and responses are random. The
update is the training loop's own, on one device: in shards of one, and whole (fp32 masters, bf16
compute). Where a model does not fit it takes fewer of its blocks, and says so. Where vLLM is
installed, it gets new weights and must sample from these. A part that would begin after `--minutes`
is left out by name. Without CUDA it checks the numerics on the CPU; `--dry` runs every part there,
on a tiny shape. Writes Markdown, and the same as JSON.

    python benchmarks/gpu/gpu_check.py --out docs/measurements
"""

import argparse
import gc
import importlib.util
import json
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from gpu_parts import (
    LIGER_SHAPE,
    inverse_speed,
    loss_speed,
    peak_gb,
    sampler_speed,
    seconds_by_part,
    wait,
)
from gpu_report import described
from synthetic_update import ALL_METHODS, METHODS, SyntheticBatch, assemble_synthetic_run
from torch import Tensor

from geosd.costs.update_operations import (
    UpdateOperationsSize,
    kfac_units,
    units_by_rule,
    update_projection_sizes,
)
from geosd.files import write_text
from geosd.models.architectures import Architecture, architecture
from geosd.optim.dtensors import full_tensor
from geosd.optim.factor_sizes import factor_bytes
from geosd.training.loop import train_step
from geosd.training.processes import TrainingProcesses, training_process_device

TINY = Architecture("tiny", "qwen3", 2, 128, 384, 4, 2, 32, 512, tied=False)
MODELS = ("qwen3-1.7b", "qwen3-8b")
"""Whose shapes an update is measured at."""


def main(arguments: list[str] | None = None) -> int:
    """Check this machine's GPU; ends with the number of checks that failed."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--out", type=Path, default=Path("docs/measurements"))
    parser.add_argument("--dry", action="store_true", help="every part, tiny, on this CPU")
    parser.add_argument("--minutes", type=float, default=8.0, help="after which no part begins")
    given = parser.parse_args(arguments)
    device = torch.device("cpu") if given.dry else training_process_device()
    cuda = device.type == "cuda"
    name = torch.cuda.get_device_name(device) if cuda else "CPU"
    found: dict[str, Any] = {"device": name, "torch": torch.__version__, "dry": given.dry}
    until = time.monotonic() + 60 * given.minutes
    began = time.monotonic()
    if cuda and importlib.util.find_spec("vllm") is not None:
        from gpu_weight_sync import weight_sync  # before this process fills the GPU

        found["weight_sync"] = weight_sync(architecture(MODELS[0]), device)
    with alone(device) as ranks:
        found["numerics"] = numerics(ranks, device)
        if cuda or given.dry:
            run_parts(found, parts(ranks, device), until)
    found["minutes"] = (time.monotonic() - began) / 60
    found["carried"] = carried()
    failed, text = described(found)
    print(text)
    path = given.out / ("dry" if given.dry else name.lower().replace(" ", "-"))
    write_text(path.with_suffix(".md"), text + "\n")
    write_text(path.with_suffix(".json"), json.dumps(found, indent=1) + "\n")
    return failed


Part = tuple[str, Callable[[], Any]]


def parts(ranks: TrainingProcesses, device: torch.device) -> list[Part]:
    """The parts of the check beyond its numerics, in their order: name, and what measures it.

    On a CPU each is tiny: it shows that the part runs.
    """
    cuda = device.type == "cuda"
    shape = architecture(MODELS[0]) if cuda else TINY
    batch = SyntheticBatch() if cuda else SyntheticBatch(2, 32, 16, 24)
    liger = LIGER_SHAPE if cuda else {"positions": 64, "hidden": 32, "vocabulary": 512}
    blocks = {"blocks": 1024, "size": 256} if cuda else {"blocks": 8, "size": 16}
    rows, tokens = (256, 512) if cuda else (4, 8)
    models = [architecture(model) for model in MODELS] if cuda else [TINY]
    precision = torch.bfloat16
    return [
        ("one_card", lambda: [one_card(shape, device, each, batch) for each in ALL_METHODS]),
        ("sampler", lambda: sampler_speed(shape, device, precision, rows, tokens)),
        ("loss", lambda: loss_speed(device, precision, **liger)),
        ("inverses", lambda: inverse_speed(device, **blocks)),
        ("updates", lambda: [cost(model, ranks, device, batch) for model in models]),
    ]


def run_parts(found: dict[str, Any], planned: Sequence[Part], until: float) -> None:
    """Measure each part into `found`; one that has no time or no memory left is noted by name."""
    for name, measure in planned:
        if time.monotonic() > until:
            found.setdefault("left_out", {})[name] = "no time was left"
            continue
        try:
            found[name] = measure()
        except torch.cuda.OutOfMemoryError:
            found.setdefault("left_out", {})[name] = "no memory was left"
        gc.collect()
        if torch.cuda.is_available():
            torch.cuda.empty_cache()


def carried() -> dict[str, float]:
    """Files of this project that the check has read, and their MiB: what a machine is given."""
    root = Path(__file__).resolve().parents[2]
    modules = [getattr(module, "__file__", None) or "" for module in list(sys.modules.values())]
    folders = (root / "src", root / "benchmarks/gpu")
    ours = {Path(file) for file in modules if any(map(Path(file).is_relative_to, folders))}
    ours |= set((root / "src/geosd/models").glob("*.yaml"))
    return {"files": len(ours), "mib": sum(file.stat().st_size for file in ours) / 2**20}


@contextmanager
def alone(device: torch.device) -> Iterator[TrainingProcesses]:
    """The GPU check's process group: this process alone, which FSDP2 needs to shard."""
    backend = "nccl" if device.type == "cuda" else "gloo"
    dist.init_process_group(backend, store=dist.HashStore(), rank=0, world_size=1)
    try:
        yield TrainingProcesses(dist.group.WORLD)
    finally:
        dist.destroy_process_group()


def numerics(
    ranks: TrainingProcesses, device: torch.device
) -> dict[str, dict[str, dict[str, float]]]:
    """Relative errors of a tiny model's first update, by comparison and method.

    They are of loss, gradient, and update after K-FAC: Euclidean norms over all parameters. Of
    every method bf16 and the CPU are compared with fp32 on this device; of those that the paper's
    costs are of, a model in shards with a whole one, too.
    """
    batch = SyntheticBatch(responses=4, tokens=48, prompt=16, privileged=32)
    whole, cpu, exact_type = TrainingProcesses(), torch.device("cpu"), torch.float32
    errors: dict[str, dict[str, dict[str, float]]] = {}
    for method in ALL_METHODS:
        exact = first_update(whole, device, method, exact_type, batch)
        others = {"bf16 against fp32": first_update(whole, device, method, torch.bfloat16, batch)}
        if method in METHODS:
            shards = first_update(ranks, device, method, exact_type, batch)
            rough = first_update(ranks, device, method, torch.bfloat16, batch)
            others |= {"shards against a whole": shards, "bf16 in shards against fp32": rough}
        if device.type == "cuda":
            others["CPU against CUDA"] = first_update(whole, cpu, method, exact_type, batch)
        for comparison, other in others.items():
            errors.setdefault(comparison, {})[method] = {
                kind: relative_error(other[kind], exact[kind]) for kind in exact
            }
    return errors


def relative_error(other: Tensor, exact: Tensor) -> float:
    """Norm of the difference over that of the exact, which is rounding where it is below 10^-5.

    Such is GRPO's loss, whose advantages add up to 0.
    """
    difference = (other.cpu() - exact.cpu()).norm().item()
    return difference / max(exact.norm().item(), 1e-5)


def first_update(
    ranks: TrainingProcesses,
    device: torch.device,
    method: str,
    compute: torch.dtype,
    batch: SyntheticBatch,
) -> dict[str, Tensor]:
    """The first update of the GPU check's tiny shape: loss, gradient, gradient after K-FAC."""
    run, args = assemble_synthetic_run(TINY, ranks, device, method, compute, batch)
    quantities: dict[str, Tensor] = {}

    def gradient() -> Tensor:
        parameters = run.student.parameters()
        return torch.cat([full_tensor(p.grad).float().flatten() for p in parameters])

    def capture_update(rate: float) -> None:
        quantities["gradient"] = gradient()
        if run.update_rule.preconditioner is not None:
            run.update_rule.preconditioner.step()
            quantities["update"] = gradient()

    run.update_rule.step = capture_update
    quantities["loss"] = torch.tensor(train_step(run, args, 1)["loss/total"])
    return quantities


def one_card(
    shape: Architecture, device: torch.device, method: str, batch: SyntheticBatch
) -> dict[str, Any]:
    """One update of a method with a whole model on one device, by part."""
    return {"method": method, "model": shape.label} | timed(
        shape, TrainingProcesses(), device, method, batch
    )


def cost(
    full: Architecture, ranks: TrainingProcesses, device: torch.device, batch: SyntheticBatch
) -> dict[str, Any]:
    """Time and memory of one update of each method, at the most blocks of a model that fit."""
    cuda = device.type == "cuda"
    total = torch.cuda.get_device_properties(device).total_memory if cuda else 1e9
    found = {"model": full.label, "blocks": full.layers, "responses": batch.responses}
    found |= {"tokens": batch.tokens, "device_gb": total / 1e9, "measured_blocks": 0, "methods": {}}
    update = UpdateOperationsSize(batch.responses, batch.tokens)
    kfac = kfac_units(full, update, share_inputs=True).total
    found["operations"] = units_by_rule(update, kfac).total / units_by_rule(update).total
    for layers in (full.layers, 24, 16, 12, 8, 4, 2, 1):
        shape = replace(full, layers=layers)
        if layers > full.layers or state_bytes(shape) > 0.92 * total:
            continue
        try:
            methods = {name: timed(shape, ranks, device, name, batch) for name in METHODS}
        except torch.cuda.OutOfMemoryError:
            continue
        return found | {"measured_blocks": layers, "methods": methods}
    return found


def state_bytes(shape: Architecture) -> int:
    """Bytes that GeoSD keeps on the checked GPU: weights, anchor, factors and their sums."""
    # 16 bytes a parameter, and the anchor's 2.
    return 18 * shape.parameters + factor_bytes(update_projection_sizes(shape)) * 3 // 2


def timed(
    shape: Architecture,
    ranks: TrainingProcesses,
    device: torch.device,
    method: str,
    batch: SyntheticBatch,
) -> dict[str, float]:
    """Two updates on this device: seconds and tokens a second of the second, also by part.

    On a GPU also the peak memory of both in GB.
    """
    cuda = device.type == "cuda"
    gc.collect()  # what the last one left: modules and their hooks refer to each other
    if cuda:
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats(device)
    run, args = assemble_synthetic_run(shape, ranks, device, method, torch.bfloat16, batch)
    train_step(run, args, 1)
    wait(device)
    began = time.monotonic()
    with seconds_by_part(device) as by_part:
        train_step(run, args, 2)
    wait(device)
    tokens = sum(map(len, batch.rollouts(shape.vocabulary).responses))
    seconds = time.monotonic() - began
    of_step = {"s": seconds, "gb": peak_gb(device), "tokens_per_s": tokens / seconds}
    return of_step | {"parts": by_part}


if __name__ == "__main__":
    raise SystemExit(main())
