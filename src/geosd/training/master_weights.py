"""bfloat16 passes over float32 weights, for a model that one process holds whole.

FSDP2 gathers a sharded model in its compute precision, adds gradients up in float32 and updates
float32 shards (`geosd.training.fsdp`). Here the same happens to a model without shards. Autocast
would cast each weight again in every pass without gradients, and a cast weight that it keeps would
outlive the update.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn
from torch.distributed.fsdp import FSDPModule


@contextmanager
def compute_weights(model: nn.Module | None, dtype: torch.dtype) -> Iterator[None]:
    """Inside, a model's weights are bfloat16; outside, they are the float32 masters.

    Gradients of the passes inside are added in float32 to those that stand at the masters. Weights
    and gradients must not be set inside.

    Args:
        model: None and a sharded model are left as they are.
        dtype: Of the passes; float32 leaves the model as it is.
    """
    masters = {}
    if dtype != torch.float32 and model is not None and not isinstance(model, FSDPModule):
        masters = {p: p.data for p in model.parameters()}
    gradients: dict[nn.Parameter, Tensor | None] = {p: p.grad for p in masters}

    def add(parameter: nn.Parameter) -> None:
        """Move a gradient that a pass has just left at its parameter to the float32 sum."""
        gradient, parameter.grad = parameter.grad, None
        if (total := gradients[parameter]) is None:
            gradients[parameter] = gradient.to(masters[parameter].dtype)
        else:
            total.add_(gradient)

    handles = []
    for parameter, master in masters.items():
        parameter.grad = None  # of another type than the weights inside
        parameter.data = master.to(dtype)
        if parameter.requires_grad:
            handles.append(parameter.register_post_accumulate_grad_hook(add))
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()
        for parameter, master in masters.items():
            parameter.data = master
            parameter.grad = gradients[parameter]
