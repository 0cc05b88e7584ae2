"""Check a CUDA machine: bf16 against fp32, vLLM's weights, and updates at the paper's sizes.

Needs torch and transformers; models and responses are random. The update is the training loop's
own, on one device, in shards of one (fp32 masters, bf16 compute). Where a model does not fit it
takes fewer of its blocks, and says so. Where vLLM is installed, it gets new weights and must sample
from these. Without CUDA it checks the numerics on the CPU. Writes Markdown, and the same as JSON.

    python benchmarks/gpu/gpu_check.py --out docs/measurements
"""

import argparse
import gc
import importlib.util
import json
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from synthetic_update import METHODS, SyntheticBatch, assemble_synthetic_run
from torch import Tensor

from geosd.costs.update_operations import projection_sizes
from geosd.files import write_text
from geosd.models.architectures import Architecture, architecture
from geosd.optim.dtensors import full_tensor
from geosd.optim.factor_sizes import factor_bytes
from geosd.training.loop import train_step
from geosd.training.processes import Ranks, local_device

TINY = Architecture("tiny", "qwen3", 2, 128, 384, 4, 2, 32, 512, tied=False)
MODELS = ("qwen3-1.7b", "qwen3-8b")
"""Whose shapes an update is measured at."""
LARGEST = {"loss": 0.05, "gradient": 0.1, "update": 0.1}
"""Relative error of bf16 that passes; bf16 has 8 bits, and errors add up over blocks."""
LARGEST_GAP = 0.25
"""Nats between vLLM's and transformers' log p of a token, both in bf16, that passes."""


def main(arguments: list[str] | None = None) -> int:
    """Check this machine's GPU; ends with the number of checks that failed."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--out", type=Path, default=Path("docs/measurements"))
    out = parser.parse_args(arguments).out
    device = local_device()
    cuda = device.type == "cuda"
    name = torch.cuda.get_device_name(device) if cuda else "CPU"
    found: dict[str, Any] = {"device": name, "torch": torch.__version__}
    if cuda and importlib.util.find_spec("vllm") is not None:
        from gpu_weight_sync import weight_sync  # before this process fills the GPU

        found["weight_sync"] = weight_sync(architecture(MODELS[0]), device)
    with alone(device) as ranks:
        found["numerics"] = numerics(ranks, device)
        if cuda:
            found["updates"] = [cost(model, ranks, device) for model in MODELS]
    failed, text = described(found)
    print(text)
    path = out / name.lower().replace(" ", "-")
    write_text(path.with_suffix(".md"), text + "\n")
    write_text(path.with_suffix(".json"), json.dumps(found, indent=1) + "\n")
    return failed


@contextmanager
def alone(device: torch.device) -> Iterator[Ranks]:
    """The GPU check's process group: this process alone, which FSDP2 needs to shard."""
    backend = "nccl" if device.type == "cuda" else "gloo"
    dist.init_process_group(backend, store=dist.HashStore(), rank=0, world_size=1)
    try:
        yield Ranks(dist.group.WORLD)
    finally:
        dist.destroy_process_group()


def numerics(ranks: Ranks, device: torch.device) -> dict[str, dict[str, float]]:
    """Relative errors of bf16 on this GPU by method: loss, gradient, and update after K-FAC.

    Euclidean norms over all parameters of a tiny model's first update.
    """
    batch = SyntheticBatch(responses=4, tokens=48, prompt=16, privileged=32)
    errors = {}
    for method in METHODS:
        exact, rough = (
            first_update(ranks, device, method, compute, batch)
            for compute in (torch.float32, torch.bfloat16)
        )
        errors[method] = {
            kind: ((rough[kind] - exact[kind]).norm() / exact[kind].norm()).item() for kind in exact
        }
    return errors


def first_update(
    ranks: Ranks, device: torch.device, method: str, compute: torch.dtype, batch: SyntheticBatch
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


def cost(model: str, ranks: Ranks, device: torch.device) -> dict[str, Any]:
    """Time and memory of one update of each method, at the most blocks of a model that fit."""
    full, batch = architecture(model), SyntheticBatch()
    total = torch.cuda.get_device_properties(device).total_memory
    found = {"model": full.label, "blocks": full.layers, "responses": batch.responses}
    found |= {"tokens": batch.tokens, "device_gb": total / 1e9, "measured_blocks": 0, "methods": {}}
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
    return 18 * shape.parameters + factor_bytes(projection_sizes(shape)) * 3 // 2


def timed(
    shape: Architecture, ranks: Ranks, device: torch.device, method: str, batch: SyntheticBatch
) -> dict[str, float]:
    """Two updates on this device: seconds of the second, and on a GPU peak memory of both in GB."""
    cuda = device.type == "cuda"
    gc.collect()  # what the last one left: modules and their hooks refer to each other
    if cuda:
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats(device)
    run, args = assemble_synthetic_run(shape, ranks, device, method, torch.bfloat16, batch)
    ends = []
    for step in (1, 2):
        train_step(run, args, step)
        if cuda:
            torch.cuda.synchronize(device)
        ends.append(time.monotonic())
    gigabytes = torch.cuda.max_memory_allocated(device) / 1e9 if cuda else 0.0
    return {"s": ends[1] - ends[0], "gb": gigabytes}


def described(found: dict[str, Any]) -> tuple[int, str]:
    """How many of the GPU check's measurements are out of bounds, and all of them as Markdown."""
    lines = [f"# {found['device']}", "", f"`make gpu-check`, torch {found['torch']}.", ""]
    if "updates" not in found:
        lines += ["There is no CUDA device here: numerics only, on the CPU, on a tiny shape.", ""]
    failed, table = described_numerics(found["numerics"])
    lines += table
    if "weight_sync" in found:
        wrong, words = described_sync(found["weight_sync"])
        failed, lines = failed + wrong, [*lines, words, ""]
    elif "updates" in found:
        lines += ["vLLM is not installed here: whether it takes new weights was not checked.", ""]
    for update in found.get("updates", ()):
        lines += described_cost(update)
    return failed, "\n".join(lines).rstrip()


def described_numerics(errors: dict[str, dict[str, float]]) -> tuple[int, list[str]]:
    """How many errors of bf16 are out of bounds, and the table of all."""
    failed = sum(
        not error <= LARGEST[kind] for each in errors.values() for kind, error in each.items()
    )
    rows = [
        [method, *(f"{each[kind]:.1e}" if kind in each else "–" for kind in LARGEST)]
        for method, each in errors.items()
    ]
    limits = ", ".join(f"{kind} {limit}" for kind, limit in LARGEST.items())
    verdict = f"**{failed} out of bounds**" if failed else "all within bounds"
    note = "Relative errors (Euclidean norm over all parameters) of one update on random weights"
    columns = ["bf16 against fp32", "loss", "gradient", "update after K-FAC"]
    return failed, [*markdown(columns, rows), f"{note}; allowed: {limits}: {verdict}.", ""]


def described_sync(sync: dict[str, float]) -> tuple[int, str]:
    """Whether vLLM samples from the weights that it got, as a number of failures, and in words.

    Before they came, its log-probabilities must have been the old model's, so far from the new
    one's; else the check could not fail.
    """
    holds = sync["gap_after"] <= LARGEST_GAP < sync["gap_before"]
    text = (
        f"vLLM {sync['version']}: new weights of {sync['parameters'] / 1e9:.2f}e9 parameters in"
        f" {sync['s']:.1f} s. Greatest distance of its log p from transformers', of"
        f" {sync['tokens']} sampled tokens: {sync['gap_before']:.2f} nats before,"
        f" {sync['gap_after']:.3f}"
        f" after; allowed {LARGEST_GAP} after, and not before: {'ok' if holds else '**wrong**'}."
    )
    return not holds, text


def described_cost(update: dict[str, Any]) -> list[str]:
    """One model's updates against the paper's memory and cost."""
    blocks, of = update["measured_blocks"], update["blocks"]
    if not blocks:
        gigabytes = update["device_gb"]
        return [f"Not one block of {update['model']} fits this device's {gigabytes:.0f} GB.", ""]
    what = update["model"]
    if blocks < of:
        what = f"{blocks} of {of} blocks of {what} (all of them do not fit)"
    methods = update["methods"]
    base, adamw, geosd = (methods[name] for name in METHODS)
    rows = [
        [name, f"{at['s']:.2f}", f"{at['s'] / base['s']:.2f}", f"{at['gb']:.1f}"]
        + [f"{at['gb'] / base['gb']:.2f}" if base["gb"] else "–"]
        for name, at in methods.items()
    ]
    columns = ["Method", "Time, s", "x OPSD", "Peak memory, GB", "x OPSD"]
    return [
        f"One update of {what}: {update['responses']} responses of up to {update['tokens']} tokens,"
        " one at a time, activations recomputed, without generation. K-FAC is"
        f" {1 - adamw['s'] / geosd['s']:.0%} of GeoSD's time. The paper has x 1.10 of the whole"
        " step's time, x 1.21 of the memory (131 and 158 GB at 8B) and x 1.27 operations.",
        "",
        *markdown(columns, rows),
    ]


def markdown(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Lines of a table, numbers to the right, and an empty line."""
    align = ["---", *["---:"] * (len(columns) - 1)]
    return [f"| {' | '.join(cells)} |" for cells in (columns, align, *rows)] + [""]


if __name__ == "__main__":
    raise SystemExit(main())
