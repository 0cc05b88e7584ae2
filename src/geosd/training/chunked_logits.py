"""Logits of a step's response positions, in chunks that fit in memory, and their gradients.

The body of a model runs once over whole sequences and leaves hidden states. The output head, whose
logits over a real vocabulary are far larger than anything else, is applied to a chunk of positions
at a time. Of a chunk's logits only those on the union support are kept: the gradient of all others
is zero, so that the backward pass needs the hidden states and the head alone. Where the support is
the whole vocabulary nothing of a chunk is kept: the backward pass computes it again.

N = response positions of the step, n = positions of one chunk, D = hidden size, V = vocabulary, S =
size of the union support, B = sequences, T = padded length.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.distributed.fsdp import FSDPModule
from torch.utils.checkpoint import checkpoint

from geosd.geometry import union_support
from geosd.geometry.simplex import simplex_dtype
from geosd.models.forward import (
    last_hidden_states,
    last_hidden_states_after,
    prefix_worth_forward,
    recomputes,
)
from geosd.models.output_head import (
    head_logits,
    head_operand_dtype,
    head_product,
    output_head_gradients,
)
from geosd.objectives.objective import Objective, ObjectiveStates
from geosd.training.packing import Packed


@dataclass(frozen=True)
class ChunkedLogits:
    """One model's logits at the response positions, from its hidden states [N, D], in chunks."""

    model: nn.Module
    hidden: Tensor

    def logits(self, at: slice) -> Tensor:
        """Logits of a chunk of positions [n, V]."""
        return head_logits(self.model, self.hidden[at])


def chunked_hidden_states(model: nn.Module, packed: Packed, every_position: bool = False) -> Tensor:
    """Hidden states [N, D] that predict each response token; the model's root is gathered.

    A long prefix that all rows share goes through an unsharded model once; with `every_position`,
    as K-FAC needs it, every token of every row does.
    """
    prefix = packed.common_prefix
    possible = not (every_position or isinstance(model, FSDPModule) or recomputes(model))
    if possible and prefix_worth_forward(*packed.ids.shape, prefix):
        hidden_BTD = last_hidden_states_after(model, packed.ids, prefix)
        return hidden_BTD[packed.row, packed.column - prefix]
    hidden_BTD = last_hidden_states(model, packed.ids)
    return hidden_BTD[packed.row, packed.column]


def chunked_position_scalars(
    objective: Objective,
    models: dict[str, ChunkedLogits],
    token_N: Tensor,
    top_k: int | None,
    chunk: int,
) -> dict[str, Tensor]:
    """An objective's scalars at each response position [N], from chunked logits of its models.

    `top_k` is K of the union of top-K supports (paper, Training: 1024), or None for the whole
    vocabulary; `chunk` bounds the positions whose logits are held.
    """
    keep = len(token_N) <= chunk

    def scalars(at: slice) -> dict[str, Tensor]:
        return objective.per_position(_states_of_chunk(models, token_N[at], at, top_k, keep))

    # Of a true subset a chunk keeps [n, S] of each distribution for the backward pass, of the whole
    # vocabulary it would keep [n, V].
    again = top_k is None and not keep and torch.is_grad_enabled()
    pieces = []
    for at in logit_chunks(len(token_N), chunk):
        if again:
            piece = checkpoint(scalars, at, use_reentrant=False, preserve_rng_state=False)
        else:
            piece = scalars(at)
        pieces.append(piece)
    if len(pieces) == 1:
        return pieces[0]
    return {name: torch.cat([piece[name] for piece in pieces]) for name in pieces[0]}


def _states_of_chunk(
    models: dict[str, ChunkedLogits], token_n: Tensor, at: slice, top_k: int | None, keep: bool
) -> ObjectiveStates:
    """An objective's inputs at some positions; with `keep` their logits may stay in memory."""
    with torch.no_grad():
        logits = {name: model.logits(at) for name, model in models.items()}
    head, hidden_nD = models["student"].model.lm_head, models["student"].hidden[at]
    student = (hidden_nD, head.weight, head.bias, logits["student"])
    on_support = [name for name in ("student", "teacher", "anchor") if name in logits]
    log_prob = {}
    if len(on_support) > 1:
        support = union_support([logits[name] for name in on_support], top_k)
        log_prob = {name: support.restrict(logits[name]) for name in on_support[1:]}
        log_prob["student"] = support.normalise(_GatheredLogits.apply(*student, support.ids))
    token_log_prob = {
        name: partial(_token_log_prob, logits[name], token_n)
        for name in ("teacher", "reference")
        if name in logits
    }
    return ObjectiveStates(
        log_p=log_prob.get("student"),
        log_q=log_prob.get("teacher"),
        log_anchor=log_prob.get("anchor"),
        token_log_p=partial(_TokenLogProb.apply, *student, token_n, keep),
        token_log_q=token_log_prob.get("teacher"),
        token_log_ref=token_log_prob.get("reference"),
    )


def _token_log_prob(logits: Tensor, token: Tensor) -> Tensor:
    """Full-softmax log-probability of each response token: z_y - logsumexp(z), [n]."""
    logits = logits.to(simplex_dtype(logits))
    return logits.gather(-1, token[:, None])[:, 0] - logits.logsumexp(-1)


class _GatheredLogits(torch.autograd.Function):
    """Logits z = W h + b at some tokens of each position [n, S]; keeps h and W, and no logits."""

    @staticmethod
    def forward(
        ctx: Any, hidden: Tensor, weight: Tensor, bias: Tensor | None, logits: Tensor, ids: Tensor
    ) -> Tensor:
        ctx.save_for_backward(hidden, weight, bias, ids)
        ctx.vocabulary, ctx.dtype = logits.shape[-1], head_operand_dtype(hidden, weight)
        return logits.gather(-1, ids)

    @staticmethod
    def backward(ctx: Any, grad_nS: Tensor) -> tuple[Tensor | None, ...]:
        *head, ids = ctx.saved_tensors
        # Added and not set: slots without a token name token 0, with a gradient of 0.
        grad_nV = grad_nS.new_zeros(len(ids), ctx.vocabulary).scatter_add_(-1, ids, grad_nS)
        return *output_head_gradients(grad_nV, *head, ctx.dtype, ctx.needs_input_grad), None, None


class _TokenLogProb(torch.autograd.Function):
    """Full-softmax log-probability of one token of each position [n]; may `keep` all logits."""

    @staticmethod
    def forward(
        ctx: Any,
        hidden: Tensor,
        weight: Tensor,
        bias: Tensor | None,
        logits: Tensor,
        token: Tensor,
        keep: bool,
    ) -> Tensor:
        ctx.save_for_backward(hidden, weight, bias, logits if keep else None, token)
        ctx.dtype = head_operand_dtype(hidden, weight)
        return _token_log_prob(logits, token)

    @staticmethod
    def backward(ctx: Any, grad_n: Tensor) -> tuple[Tensor | None, ...]:
        hidden, weight, bias, logits, token = ctx.saved_tensors
        if logits is None:
            logits = head_product(hidden, weight, bias, ctx.dtype)
        # d log p(y) / d z_i = [i = y] - p_i
        grad_nV = logits.to(simplex_dtype(logits)).softmax(-1).mul_(-grad_n[:, None])
        grad_nV.scatter_add_(-1, token[:, None], grad_n[:, None])
        head = hidden, weight, bias, ctx.dtype, ctx.needs_input_grad
        return *output_head_gradients(grad_nV, *head), None, None, None


def logit_chunks(positions: int, size: int) -> Iterator[slice]:
    """Consecutive slices of at most `size` positions."""
    for start in range(0, positions, size):
        yield slice(start, min(start + size, positions))
