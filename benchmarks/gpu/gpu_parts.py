"""Parts of a step on a CUDA machine: seconds of each, the sampler, a loss, inverses of blocks."""

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest.mock import patch

import torch
from torch import nn

from geosd.models.architectures import Architecture
from geosd.models.tiny_models import random_model
from geosd.objectives.objective import build_objective
from geosd.optim.damped_inverse import inverse_by_cholesky
from geosd.optim.kfac import KFAC
from geosd.optim.update import UpdateRule
from geosd.sampling.sampler import SamplingParams
from geosd.sampling.transformers_sampler import TransformersSampler
from geosd.training.chunked_logits import ChunkedLogits, chunked_position_scalars
from geosd.training.loop import TrainStepLoss
from geosd.training.run import TrainingRun

LIGER_SHAPE = {"positions": 8192, "hidden": 4096, "vocabulary": 128_256}
"""Of the benchmark of Liger Kernel's FusedLinearKLDiv: BT, H and V."""
PARTS = {
    "teacher, anchor, pi_0": (TrainingRun, "reference_logits"),
    "student, loss, gradient": (TrainStepLoss, "backward"),
    "update": (UpdateRule, "step"),
    "K-FAC of it": (KFAC, "step"),
}
"""Part of a step -> the class and method that do it; K-FAC is a part of the update."""


def wait(device: torch.device) -> None:
    """Wait until a device has finished its work."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def peak_gb(device: torch.device) -> float:
    """GB that tensors have taken of a GPU at most since the last reset; 0 on a CPU."""
    return torch.cuda.max_memory_allocated(device) / 1e9 if device.type == "cuda" else 0.0


@contextmanager
def seconds_by_part(device: torch.device) -> Iterator[dict[str, float]]:
    """Context in which the parts of steps are timed; each waits for the device before and after."""
    seconds = dict.fromkeys(PARTS, 0.0)

    def timed(part: str, method: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **options: Any) -> Any:
            wait(device)
            began = time.monotonic()
            result = method(*arguments, **options)
            wait(device)
            seconds[part] += time.monotonic() - began
            return result

        return call

    with ExitStack() as stack:
        for part, (owner, name) in PARTS.items():
            stack.enter_context(patch.object(owner, name, timed(part, getattr(owner, name))))
        yield seconds


def sampler_speed(
    shape: Architecture, device: torch.device, precision: torch.dtype, rows: int, tokens: int
) -> dict[str, Any]:
    """Tokens a second of transformers' sampler, on a random model that never ends a response."""
    torch.manual_seed(0)
    with device:
        model = random_model(shape, positions=2**15).to(precision).eval()
    prompts = torch.randint(1, shape.vocabulary, (rows, 64)).tolist()
    sampler = TransformersSampler(model, end_ids=(), pad_id=0, rows=rows)
    sampler.sample(prompts[:2], SamplingParams(1.0, 1.0, 2), seed=0)
    began = time.monotonic()
    completions = sampler.sample(prompts, SamplingParams(1.0, 1.0, tokens), seed=1)
    wait(device)
    seconds = time.monotonic() - began
    drawn = sum(len(completion.ids) for completion in completions)
    devices = {str(parameter.device.type) for parameter in model.parameters()}
    return {"model": shape.label, "rows": rows, "tokens": tokens, "device": devices.pop()} | {
        "tokens_per_s": drawn / seconds
    }


def loss_speed(
    device: torch.device, dtype: torch.dtype, positions: int, hidden: int, vocabulary: int
) -> dict[str, float]:
    """Milliseconds, and GB beyond its inputs, of FwdKL and its gradients from hidden states.

    Student and teacher have heads of their own; the gradients are of the student's states and head.
    """
    torch.manual_seed(0)
    models, inputs = {}, []
    for name in ("student", "teacher"):
        with device:
            head = nn.Linear(hidden, vocabulary, bias=False, dtype=dtype)
            states = torch.randn(positions, hidden, dtype=dtype) / hidden**0.5
        trained = name == "student"
        head.requires_grad_(trained)
        model = nn.Module()
        model.lm_head = head
        models[name] = ChunkedLogits(model, states.requires_grad_(trained))
        inputs += [head.weight, states] if trained else []
    token = torch.randint(vocabulary, (positions,), device=device)
    top_k = min(1024, vocabulary // 8)

    def once() -> float:
        wait(device)
        began = time.monotonic()
        scalars = chunked_position_scalars(
            build_objective("fwdkl"), models, token, top_k, chunk=1024
        )
        scalars["loss"].mean().backward()
        wait(device)
        return time.monotonic() - began

    once()
    before = torch.cuda.memory_allocated(device) / 1e9 if device.type == "cuda" else 0.0
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats(device)
    seconds = min(once() for _ in range(3))
    shape = {"positions": positions, "hidden": hidden, "vocabulary": vocabulary}
    return shape | {"ms": 1000 * seconds, "gb": max(peak_gb(device) - before, 0.0)}


def inverse_speed(device: torch.device, blocks: int, size: int) -> dict[str, float]:
    """Milliseconds of the damped inverses of a stack of blocks, and of as many times one block.

    Where the first is as long as the second, torch takes the blocks one by one.
    """
    torch.manual_seed(0)
    with device:
        rows = torch.randn(blocks, size, 2 * size)
    stack = rows @ rows.mT / (2 * size)

    def seconds(part: torch.Tensor) -> float:
        inverse_by_cholesky(part, 0.03)
        wait(device)
        began = time.monotonic()
        inverse_by_cholesky(part, 0.03)
        wait(device)
        return time.monotonic() - began

    together = seconds(stack)
    alone = seconds(stack[:1])
    return {
        "blocks": blocks,
        "size": size,
        "ms": 1e3 * together,
        "one_by_one_ms": 1e3 * alone * blocks,
    }
