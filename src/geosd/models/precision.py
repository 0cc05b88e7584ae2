"""The type that a model computes in: bfloat16 where the device multiplies it faster."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal

import torch
from torch import Tensor, nn

Precision = Literal["auto", "bfloat16", "float32"]
"""A type by its name; "auto" is bfloat16 where a device multiplies it faster than float32."""


def resolve_precision(precision: Precision, device: torch.device) -> Literal["bfloat16", "float32"]:
    """The type that a precision of the settings stands for on a device."""
    if precision == "auto":
        return "bfloat16" if bfloat16_is_faster(device) else "float32"
    return precision


def bfloat16_is_faster(device: torch.device) -> bool:
    """Whether a device multiplies bfloat16 faster: GPUs, processors with AMX, AMD's AVX512-BF16.

    Intel's AVX512-BF16 without AMX, as in virtual machines, is slower than float32
    (docs/performance.md).
    """
    if device.type == "cuda":
        return torch.cuda.is_bf16_supported(including_emulation=False)
    cpu = torch.cpu.get_capabilities()
    intel = str(cpu.get("cpu_name", "")).startswith("Intel")
    return bool(cpu.get("amx_bf16") or (cpu.get("avx512_bf16") and not intel))


def cast_parameters(model: nn.Module, dtype: torch.dtype) -> nn.Module:
    """Cast a model's parameters in place; buffers, such as rotary frequencies, keep their type."""
    for parameter in model.parameters():
        parameter.data = parameter.data.to(dtype)
    return model


@contextmanager
def weights_in_precision(model: nn.Module, dtype: torch.dtype) -> Iterator[None]:
    """Inside, a model's weights are of type `dtype`; outside, they are the float32 masters.

    Gradients of the passes inside are added in float32 to those that stand at the masters. Weights
    and gradients must not be set inside. A sharded model is left as it is.
    """
    from torch.distributed.fsdp import FSDPModule  # slow; who trains has loaded it

    masters = {}
    if dtype != torch.float32 and not isinstance(model, FSDPModule):
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
