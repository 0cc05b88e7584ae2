"""Check a CUDA machine: bf16 against fp32, then time and memory of one update at the paper's size.

Needs torch and transformers; models and responses are random. The update is the training loop's
own, on one device, in shards of one (fp32 masters, bf16 compute). Where Qwen3-8B does not fit it
takes fewer of its blocks, and says so. Without CUDA it checks the numerics on the CPU.

    python -m geosd.steps.gpu_check --out docs/measurements
"""

from __future__ import annotations

import argparse
import gc
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace

import torch
import torch.distributed as dist
from torch import Tensor, nn

from geosd.files import write_text
from geosd.models.published_architectures import Architecture, architecture
from geosd.models.tiny_architectures import random_model
from geosd.objectives.objective import build
from geosd.optim.distributed import full_tensor
from geosd.optim.kfac_memory import Dimensions, factor_bytes
from geosd.optim.update import UpdateRule
from geosd.training.fsdp import reshard, shard
from geosd.training.processes import Ranks, local_device
from geosd.training.reference_models import frozen_copy
from geosd.training.rollouts import Rollouts
from geosd.training.run import TrainingArguments, TrainingRun
from geosd.training.step import train_step

TINY = Architecture("tiny", "qwen3", 2, 128, 384, 4, 2, 32, 512, tied=False)
METHODS = {"OPSD (standard)": ("fwdkl", "adamw"), "GeoSD": ("geosd", "kfac")}
LARGEST = {"loss": 0.05, "gradient": 0.1, "update": 0.1}
"""Relative error of bf16 that passes; bf16 has 8 bits, and errors add up over blocks."""


@dataclass(frozen=True)
class SyntheticBatch:
    """The random responses of the GPU check's update: how many, and of how many tokens."""

    responses: int = 8
    tokens: int = 4096
    prompt: int = 256
    privileged: int = 2304  # the teacher's sequences are half as long again (paper, Table flops)

    def rollouts(self, vocabulary: int) -> Rollouts:
        """Random token ids for the GPU check, some responses shorter than others."""
        draw = torch.Generator().manual_seed(0)

        def ids(length: int) -> list[int]:
            return torch.randint(vocabulary, (length,), generator=draw).tolist()

        lengths = [self.tokens * (16 - i) // 16 for i in range(self.responses)]
        return Rollouts(
            problems=[None] * self.responses,
            student_prompts=[ids(self.prompt) for _ in lengths],
            teacher_prompts=[ids(self.privileged) for _ in lengths],
            responses=[ids(length) for length in lengths],
            rewards=[0.0] * self.responses,
            truncated=[False] * self.responses,
        )


class LiveTeacherAndAnchor:
    """Reference models of the GPU check: a live teacher, and an anchor where one is needed."""

    def __init__(self, student: nn.Module, compute: torch.dtype, needed: bool) -> None:
        """Copy the student as it is now."""
        self.teacher = student
        self.anchor = frozen_copy(student, compute, compute) if needed else None
        self.reference = self.average = None

    def refresh(self, step: int) -> None:
        """Keep the anchor: one serves the whole GPU check."""

    def reshard(self) -> None:
        """Free the parameters that a step of the GPU check gathered."""
        if self.anchor is not None:
            reshard(self.anchor)


def main(arguments: list[str] | None = None) -> int:
    """Check this machine's GPU; returns the number of checks that failed."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--out", type=Path, default=Path("docs/measurements"))
    out = parser.parse_args(arguments).out
    device = local_device()
    name = torch.cuda.get_device_name(device) if device.type == "cuda" else "CPU"
    lines = [f"# {name}", "", f"`make gpu-check`, torch {torch.__version__}.", ""]
    if device.type != "cuda":
        lines += ["There is no CUDA device here: numerics only, on the CPU, on a tiny shape.", ""]
    with alone(device) as ranks:
        failed, table = numerics(ranks, device)
        lines += table
        if device.type == "cuda":
            lines += cost(ranks, device)
    print("\n".join(lines))
    write_text(out / f"{name.lower().replace(' ', '-')}.md", "\n".join(lines) + "\n")
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


def numerics(ranks: Ranks, device: torch.device) -> tuple[int, list[str]]:
    """Check bf16 on this GPU: how many quantities are wrong, and the table of all."""
    batch = SyntheticBatch(responses=4, tokens=48, prompt=16, privileged=32)
    lines = ["| bf16 against fp32 | loss | gradient | update after K-FAC |", "|---|---:|---:|---:|"]
    failed = 0
    for method in METHODS:
        exact, rough = (
            first_update(ranks, device, method, compute, batch)
            for compute in (torch.float32, torch.bfloat16)
        )
        errors = {
            kind: ((rough[kind] - exact[kind]).norm() / exact[kind].norm()).item() for kind in exact
        }
        failed += sum(not error <= LARGEST[kind] for kind, error in errors.items())
        cells = [f"{errors[kind]:.1e}" if kind in errors else "–" for kind in LARGEST]
        lines.append(f"| {method} | {' | '.join(cells)} |")
    limits = ", ".join(f"{kind} {limit}" for kind, limit in LARGEST.items())
    verdict = f"**{failed} out of bounds**" if failed else "all within bounds"
    note = "Relative errors (Euclidean norm over all parameters) of one update on random weights"
    return failed, [*lines, "", f"{note}; allowed: {limits}: {verdict}.", ""]


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


def cost(ranks: Ranks, device: torch.device) -> list[str]:
    """Measure one update of each method on this GPU, at the largest shape that fits."""
    full = architecture("qwen3-8b")
    total = torch.cuda.get_device_properties(device).total_memory
    for layers in (full.layers, 24, 16, 12, 8, 4, 2, 1):
        shape = replace(full, layers=layers)
        if state_bytes(shape) > 0.92 * total:
            continue
        try:
            measured = {m: timed(shape, ranks, device, m, SyntheticBatch()) for m in METHODS}
        except torch.cuda.OutOfMemoryError:
            continue
        return table(shape, full, measured)
    return [f"No shape fits this device's {total / 1e9:.0f} GB: not one block of Qwen3-8B.", ""]


def state_bytes(shape: Architecture) -> int:
    """Bytes that GeoSD keeps on the checked GPU: weights, anchor, factors and their sums."""
    sides = Dimensions(
        shape.layers, shape.hidden, shape.ffn, shape.heads, shape.kv_heads, shape.head
    )
    # 16 bytes a parameter, and the anchor's 2.
    return 18 * shape.parameters + factor_bytes(sides) * 3 // 2


def timed(
    shape: Architecture, ranks: Ranks, device: torch.device, method: str, batch: SyntheticBatch
) -> tuple[float, float]:
    """Time two updates on this GPU: seconds of the second, peak memory of both in GB."""
    gc.collect()  # what the last one left: modules and their hooks refer to each other
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats(device)
    run, args = assemble_synthetic_run(shape, ranks, device, method, torch.bfloat16, batch)
    train_step(run, args, 1)
    torch.cuda.synchronize(device)
    began = time.monotonic()
    train_step(run, args, 2)
    torch.cuda.synchronize(device)
    return time.monotonic() - began, torch.cuda.max_memory_allocated(device) / 1e9


def table(
    shape: Architecture, full: Architecture, measured: dict[str, tuple[float, float]]
) -> list[str]:
    """The GPU check's measurements beside the paper's memory and cost."""
    what = "Qwen3-8B" if shape == full else f"{shape.layers} of {full.layers} blocks of Qwen3-8B"
    if shape != full:
        what += " (all of them do not fit)"
    seconds, gigabytes = measured["OPSD (standard)"]
    batch = SyntheticBatch()
    lines = [
        f"One update of {what}, {shape.parameters / 1e9:.2f}e9 parameters: {batch.responses}"
        f" responses of up to {batch.tokens} tokens, one at a time, activations recomputed, without"
        " generation. The paper has 131 and 158 GB at 8B, x 1.21, and x 1.27 operations.",
        "",
        "| Method | Time, s | x OPSD | Peak memory, GB | x OPSD |",
        "|---|---:|---:|---:|---:|",
    ]
    for method, (time_, memory) in measured.items():
        lines.append(
            f"| {method} | {time_:.2f} | {time_ / seconds:.2f} | {memory:.1f} |"
            f" {memory / gigabytes:.2f} |"
        )
    return [*lines, ""]


def assemble_synthetic_run(
    shape: Architecture,
    ranks: Ranks,
    device: torch.device,
    method: str,
    compute: torch.dtype,
    batch: SyntheticBatch,
) -> tuple[TrainingRun, TrainingArguments]:
    """The GPU check's training run: random weights on random responses."""
    name, rule = METHODS[method]
    objective = build(name)
    torch.manual_seed(0)  # the same weights on every call
    with device:
        student = random_model(shape, positions=2**15)
    shard(student, ranks.group, device, compute)
    student.gradient_checkpointing_enable({"use_reentrant": False})
    student.train()
    reference_models = LiveTeacherAndAnchor(student, compute, "anchor" in objective.needs)
    with torch.no_grad():  # away from the anchor, where the distance to it has a gradient
        for parameter in student.parameters():
            parameter.mul_(1.01)
    update_rule = UpdateRule(student, rule=rule, lr=1e-6, kfac={"group": ranks.group})
    rollouts = batch.rollouts(shape.vocabulary)
    run = TrainingRun(
        student=student,
        objective=objective,
        update_rule=update_rule,
        reference_models=reference_models,
        problem_sampler=None,
        rollout_source=SimpleNamespace(collect=lambda step, measured: (rollouts, {})),
        encoding=SimpleNamespace(pad_id=0),
        seed=0,
        ranks=ranks,
    )
    return run, TrainingArguments(
        steps=10**6,
        learning_rate=1e-6,
        warmup=20,
        top_k=min(1024, shape.vocabulary // 8),
        loss_mean="sequence",
        save_every=10**6,
        max_skipped_steps=0,
        diagnose_every=10**6,
        final_rollouts=batch.responses,
        chunk=1024,
        microbatch=1,
        precision=str(compute).removeprefix("torch."),
    )


if __name__ == "__main__":
    gc.enable()  # see geosd.steps
    sys.exit(main())
