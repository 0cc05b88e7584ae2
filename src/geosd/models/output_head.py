"""Logits of an output head in float32 where its weights and the hidden states are bfloat16.

A logit of 20 in bfloat16 is off by up to .06. Between two models that are close to each other the
logits differ by less, so that their distance, and the gradient of its square, would be mostly that
rounding (docs/method.md). The products are exact in float32, and a matrix product adds them up in
float32 in any case: only the rounding of the sum is left out. Needs torch alone.

N = positions, D = hidden width, V = vocabulary.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

HALF = (torch.bfloat16, torch.float16)
ROWS = 8192
"""Rows of a head that are float32 at once where a device has no product of two types: 134 MB at
D = 4,096."""


def output_logits(head: nn.Module, hidden: Tensor) -> Tensor:
    """Logits [..., V] of an output head of hidden states [..., D], with gradient.

    They are float32 from half precision, autocast's too; otherwise what the head itself gives, as
    where it is more than an `nn.Linear`, such as one with an adapter.
    """
    dtype = head_operand_dtype(hidden, head.weight) if type(head) is nn.Linear else None
    if dtype not in HALF:
        return head(hidden)

    def forward(hidden: Tensor) -> Tensor:
        logits = _Logits.apply(hidden.flatten(0, -2), head.weight, head.bias, dtype)
        return logits.unflatten(0, hidden.shape[:-1])

    with _forward_as(head, forward):
        return head(hidden)  # with the hooks of the head, as K-FAC's


def head_operand_dtype(hidden: Tensor, weight: Tensor) -> torch.dtype:
    """The type in which hidden states meet the weights: autocast's, or the weights' own."""
    kind = hidden.device.type
    if torch.is_autocast_enabled(kind) and weight.dtype != torch.float64:
        return torch.get_autocast_dtype(kind)
    return weight.dtype


@contextmanager
def float32_head_logits(model: nn.Module) -> Iterator[None]:
    """Inside, a model called as a whole, without gradients, gives the logits of `output_logits`."""
    head = getattr(model, "lm_head", None)
    dtype = head_operand_dtype(head.weight, head.weight) if type(head) is nn.Linear else None
    if dtype not in HALF:
        yield
        return
    weight = head.weight.detach().to(dtype)
    if not _multiplies_into_float32(weight):
        weight = weight.float()  # once, and not for each token

    def forward(hidden: Tensor) -> Tensor:
        logits = _float32_product(hidden.flatten(0, -2).to(dtype), weight, head.bias)
        return logits.unflatten(0, hidden.shape[:-1])

    with _forward_as(head, forward):
        yield


@contextmanager
def _forward_as(head: nn.Module, forward: Callable[[Tensor], Tensor]) -> Iterator[None]:
    """Inside, a head that is called computes `forward` in place of its own."""
    head.forward = forward
    try:
        yield
    finally:
        del head.forward


def head_product(hidden: Tensor, weight: Tensor, bias: Tensor | None, dtype: torch.dtype) -> Tensor:
    """Logits [N, V] of an output head's weights, as `dtype`; half precision gives float32."""
    hidden, weight = hidden.to(dtype), weight.to(dtype)
    if dtype in HALF:
        return _float32_product(hidden, weight, bias)
    return nn.functional.linear(hidden, weight, None if bias is None else bias.to(dtype))


def output_head_gradients(
    grad_NV: Tensor,
    hidden: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    dtype: torch.dtype,
    needed: tuple[bool, ...],
) -> tuple[Tensor | None, Tensor | None, Tensor | None]:
    """Gradients of hidden states, weight and bias of an output head, in their types, by `dtype`."""
    grad = grad_NV.to(dtype)
    return (
        (grad @ weight.to(dtype)).to(hidden.dtype) if needed[0] else None,
        (grad.T @ hidden.to(dtype)).to(weight.dtype) if needed[1] else None,
        grad_NV.sum(0).to(bias.dtype) if bias is not None and needed[2] else None,
    )


class _Logits(torch.autograd.Function):
    """`head_product` with gradient."""

    @staticmethod
    def forward(
        ctx: Any, hidden: Tensor, weight: Tensor, bias: Tensor | None, dtype: torch.dtype
    ) -> Tensor:
        ctx.save_for_backward(hidden, weight, bias)
        ctx.dtype = dtype
        return head_product(hidden, weight, bias, dtype)

    @staticmethod
    def backward(ctx: Any, grad_NV: Tensor) -> tuple[Tensor | None, ...]:
        needed = ctx.needs_input_grad
        return *output_head_gradients(grad_NV, *ctx.saved_tensors, ctx.dtype, needed), None


def _float32_product(hidden_ND: Tensor, weight_VD: Tensor, bias: Tensor | None) -> Tensor:
    """Logits [N, V] in float32 of half precision; the weights may be float32 already."""
    with torch.autocast(hidden_ND.device.type, enabled=False):
        if _multiplies_into_float32(weight_VD):
            logits = torch.mm(hidden_ND, weight_VD.T, out_dtype=torch.float32)
        else:
            shape = len(hidden_ND), len(weight_VD)
            logits, wide = hidden_ND.new_empty(shape, dtype=torch.float32), hidden_ND.float()
            for rows, columns in zip(weight_VD.split(ROWS), logits.split(ROWS, 1), strict=True):
                torch.mm(wide, rows.float().T, out=columns)
        return logits if bias is None else logits.add_(bias)


def _multiplies_into_float32(tensor: Tensor) -> bool:
    """Whether torch multiplies half precision into float32 where a tensor lies: CUDA, since 2.8."""
    overloads = torch.ops.aten.mm.overloads()
    return tensor.device.type == "cuda" and not torch.version.hip and "dtype" in overloads


def head_logits(model: nn.Module, hidden_ND: Tensor) -> Tensor:
    """Logits [..., V] that a model's output head makes of hidden states [..., D]."""
    return output_logits(model.lm_head, hidden_ND)
