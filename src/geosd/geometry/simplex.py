"""Log-probabilities as points of the simplex: precision, the floor of logarithms, and entropy.

Shapes: [..., V] with V the vocabulary or any support; every divergence sums over the last axis.
"""

import functools
import math
from typing import Any

import torch
from torch import Tensor

_HALF = (torch.bfloat16, torch.float16)


def simplex_dtype(*tensors: Tensor) -> torch.dtype:
    """Precision of arithmetic on the simplex: that of the widest tensor, at least float32."""
    dtype = functools.reduce(torch.promote_types, (tensor.dtype for tensor in tensors))
    return torch.float32 if dtype in _HALF else dtype


def in_simplex_dtype(*tensors: Tensor) -> tuple[Tensor, ...]:
    """The tensors in one precision: float32 from half precision, float64 where one has it."""
    dtype = simplex_dtype(*tensors)
    return tuple(tensor.to(dtype) for tensor in tensors)


def log_distributions(*tensors: Tensor, normalised: bool = False) -> tuple[Tensor, ...]:
    """The tensors as log-probabilities in one precision, each normalised over its last axis.

    Every divergence begins here, so that it takes logits, logits restricted to a support, and
    log-probabilities alike. A caller whose rows sum to one already says so with `normalised`, and
    saves a pass over the vocabulary forward and one backward.
    """
    tensors = in_simplex_dtype(*tensors)
    return tensors if normalised else tuple(tensor.log_softmax(-1) for tensor in tensors)


def simplex_floor(dtype: torch.dtype) -> float:
    """The lowest log-probability that enters a logarithm, log(finfo(dtype).tiny), in nats.

    About -87.3 in float32 and -708.4 in float64.
    """
    return math.log(torch.finfo(dtype).tiny)


class _Floor(torch.autograd.Function):
    """max(log p, floor) in value, the identity in gradient."""

    @staticmethod
    def forward(ctx: Any, log_p: Tensor) -> Tensor:
        return log_p.clamp(min=simplex_floor(log_p.dtype))

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Tensor:
        return gradient


def floored(log_p: Tensor) -> Tensor:
    """Log-probabilities with -inf and all below the floor raised to it; shape and dtype stay.

    The gradient passes unchanged. A clamp would cut it, and forward KL would stop pulling exactly
    where the paper says that it pulls hardest: its weight is q_i, however small p_i is.
    """
    return _Floor.apply(log_p)


def entropy(log_p: Tensor, *, normalised: bool = False) -> Tensor:
    """Shannon entropy of p [..., V] in nats, -sum_i p_i log p_i, [...] in float32 or better."""
    (log_p,) = log_distributions(log_p, normalised=normalised)
    return -(log_p.exp() * floored(log_p)).sum(-1)
