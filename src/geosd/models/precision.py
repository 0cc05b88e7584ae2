"""The type that a model computes in: bfloat16 where the device multiplies it natively."""

from typing import Literal

import torch
from torch import nn

Precision = Literal["auto", "bfloat16", "float32"]
"""A type by its name; "auto" is bfloat16 where the device has instructions for it."""


def resolve_precision(precision: Precision, device: torch.device) -> Literal["bfloat16", "float32"]:
    """The type that a precision of the settings stands for on a device."""
    if precision == "auto":
        return "bfloat16" if has_bfloat16(device) else "float32"
    return precision


def has_bfloat16(device: torch.device) -> bool:
    """Whether a device multiplies bfloat16; of processors only by AVX512-BF16 and AMX."""
    if device.type == "cuda":
        return torch.cuda.is_bf16_supported(including_emulation=False)
    has = torch.cpu.get_capabilities()
    return bool(has.get("avx512_bf16") or has.get("amx_bf16"))


def cast_parameters(model: nn.Module, dtype: torch.dtype) -> nn.Module:
    """Cast a model's parameters in place; buffers, such as rotary frequencies, keep their type."""
    for parameter in model.parameters():
        parameter.data = parameter.data.to(dtype)
    return model
