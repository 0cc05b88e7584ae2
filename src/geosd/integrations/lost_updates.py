"""Weights in half precision that an optimiser's updates are too small to move."""

import warnings
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn
from transformers import TrainerCallback, TrainerState, TrainingArguments

from geosd.models.output_head import HALF
from geosd.optim.dtensors import is_dtensor

SAMPLED = 65_536
"""Weights of a tensor that are looked at, evenly spaced."""
ENOUGH = 0.5
"""Least share of weights that an update must be able to move."""


class UpdatesMove(TrainerCallback):
    """Runs `check_updates_move` when a training begins, on weights as they will be updated."""

    def on_train_begin(
        self,
        args: TrainingArguments,
        state: TrainerState,
        *_: Any,
        model: nn.Module,
        optimizer: torch.optim.Optimizer | None = None,
        **__: Any,
    ) -> None:
        """Refuse or warn."""
        check_updates_move(model, optimizer)


def check_updates_move(model: nn.Module, optimizer: torch.optim.Optimizer | None) -> None:
    """Refuse, or warn of, trained weights in bfloat16 or float16, with the share that can move.

    AdamW moves a weight by about the learning rate. A weight in bfloat16 has eight bits, so that a
    weight of .02 lies 1.2e-4 from the next: a step of 1e-6 is rounded away, at each step anew.
    Every process calls this.

    Raises:
        ValueError: The optimiser is torch's AdamW or Adam, and its steps are lost at most weights.
            Another one is warned of: it may keep float32 copies, or round at random.
    """
    rate_of, peak, plain = {}, 0.0, True
    while hasattr(optimizer, "optimizer"):  # accelerate's wrapper
        optimizer = optimizer.optimizer
    if optimizer is not None:
        plain = type(optimizer) in (torch.optim.AdamW, torch.optim.Adam)
        for group in optimizer.param_groups:
            rate = float(group.get("initial_lr", group["lr"]))  # the peak, before any warm-up
            rate_of |= {id(parameter): rate for parameter in group["params"]}
            peak = max(peak, rate)
    trained = [each for each in model.parameters() if each.requires_grad]
    half = [each for each in trained if each.dtype in HALF]
    rates = [rate_of.get(id(each), peak) for each in half]  # a wrapper may have its own objects
    if not half or not any(rates):
        return
    moved = 0.0
    for each, rate in zip(half, rates, strict=True):
        moved += share_of_updates_not_lost(each, rate) * _local(each).numel()
    sizes = [sum(_local(each).numel() for each in group) for group in (half, trained)]
    counts = torch.tensor([moved, *sizes], dtype=torch.float64)
    share, halves = _over_all_processes(counts, half[0].device)
    names = " and ".join(sorted({str(each.dtype).removeprefix("torch.") for each in half}))
    found = (
        f"{halves:.0%} of the trained weights are {names}. An update of {max(rates):.1e}, the"
        f" learning rate, can move {share:.1%} of them; at the others it is rounded away."
    )
    hint = (
        "\nHint: load the model in float32 (dtype=torch.float32 of from_pretrained, or of"
        " model_init_kwargs) and set bf16=True, which computes in bfloat16 all the same. Where"
        " float32 weights do not fit, train LoRA's matrices in float32 (peft_config), or take an"
        " optimiser with float32 copies or stochastic rounding."
    )
    if plain and share < ENOUGH:
        raise ValueError(found + hint)
    warnings.warn(found + hint, stacklevel=1)  # one place, so that it is said once


@torch.no_grad()
def share_of_updates_not_lost(weight: Tensor, step: float) -> float:
    """The share of a tensor's weights that adding or taking `step` changes, after rounding.

    Example:
        >>> weight = torch.tensor([1e-5, 0.02, 1.0], dtype=torch.bfloat16)
        >>> [round(share_of_updates_not_lost(weight, step), 2) for step in (1e-6, 1e-4)]
        [0.33, 0.67]
    """
    values = _local(weight.detach()).flatten()
    if not len(values):
        return 0.0
    values = values[:: max(1, len(values) // SAMPLED)]
    exact = values.float()
    up, down = (exact + sign * step for sign in (1, -1))
    moves = (up.to(weight.dtype) != values) | (down.to(weight.dtype) != values)
    return moves.float().mean().item()


def _local(weight: Tensor) -> Tensor:
    return weight.to_local() if is_dtensor(weight) else weight


def _over_all_processes(counts: Tensor, device: torch.device) -> tuple[float, float]:
    """The share that moves among weights in half precision, and the share of these among all."""
    if dist.is_available() and dist.is_initialized():
        counts = counts.to(device)
        dist.all_reduce(counts)
    moved, half, trained = counts.tolist()
    return moved / max(1.0, half), half / max(1.0, trained)
