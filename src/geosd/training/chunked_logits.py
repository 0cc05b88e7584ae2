"""How each model sees the response positions of a step, in chunks that fit in memory.

The body of a model runs once over whole sequences and leaves hidden states; the output head, whose
logits over a real vocabulary are far larger than anything else, is applied to a chunk of positions
at a time, and again in the backward pass. No full-batch logit tensor is ever formed.

N = response positions of the step, n = positions of one chunk, D = hidden size, V = vocabulary,
S = size of the union support, B = sequences, T = padded length.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from geosd.geometry import union_support
from geosd.models.forward import head_logits, last_hidden_states
from geosd.objectives.objective import Objective, States
from geosd.training.fsdp import with_root_gathered
from geosd.training.packing import Packed


@dataclass(frozen=True)
class ChunkedLogits:
    """One model's logits at the response positions, computed a chunk at a time.

    Attributes:
        model: Has the output head.
        hidden: Its hidden states [N, D].
    """

    model: nn.Module
    hidden: Tensor

    def logits(self, at: slice) -> Tensor:
        """Logits of a chunk of positions [n, V]."""
        return head_logits(self.model, self.hidden[at])


def response_logits(model: nn.Module, packed: Packed) -> ChunkedLogits:
    """Run a model's body once; its logits where it predicts each response token."""
    hidden_ND = with_root_gathered(model, lambda root: response_hidden_states(root, packed))
    return ChunkedLogits(model, hidden_ND)


def response_hidden_states(model: nn.Module, packed: Packed) -> Tensor:
    """Hidden states [N, D] that predict each response token; the model's root is gathered."""
    hidden_BTD = last_hidden_states(model, packed.ids, packed.mask)
    return hidden_BTD[packed.row, packed.column]


def local_quantities(
    objective: Objective, models: dict[str, ChunkedLogits], token_N: Tensor, top_k: int, chunk: int
) -> dict[str, Tensor]:
    """The objective's per-position quantities, each [N], with gradients to the student alone.

    Args:
        objective: The method.
        models: "student", and those of "teacher", "anchor", "reference" that the method needs.
        token_N: The response tokens.
        top_k: K of the union of top-K supports (paper, Training: 1024).
        chunk: Positions whose logits are held at once.
    """
    student = models["student"]

    def quantities_of_chunk(hidden_nD: Tensor, at: slice) -> dict[str, Tensor]:
        logits = {name: model.logits(at) for name, model in models.items() if name != "student"}
        logits["student"] = head_logits(student.model, hidden_nD)
        return objective.local(_states(logits, token_N[at], top_k))

    if len(token_N) <= chunk:
        return quantities_of_chunk(student.hidden, slice(None))
    # Logits are thrown away after the forward and made again in the backward.
    pieces = [
        checkpoint(quantities_of_chunk, student.hidden[at], at, use_reentrant=False)
        for at in chunks(len(token_N), chunk)
    ]
    return {name: torch.cat([piece[name] for piece in pieces]) for name in pieces[0]}


def _states(logits: dict[str, Tensor], token_n: Tensor, top_k: int) -> States:
    """What an objective reads of the models' logits, each [n, V]."""
    on_support = [name for name in ("student", "teacher", "anchor") if name in logits]
    log_prob = {}
    if len(on_support) > 1:
        support = union_support([logits[name].detach() for name in on_support], top_k)
        log_prob = {name: support.restrict(logits[name]) for name in on_support}
    token_log_prob = {
        name: _token_log_prob(logits[name], token_n)
        for name in ("student", "teacher", "reference")
        if name in logits
    }
    return States(
        log_p=log_prob.get("student"),
        log_q=log_prob.get("teacher"),
        log_anchor=log_prob.get("anchor"),
        token_log_p=token_log_prob["student"],
        token_log_q=token_log_prob.get("teacher"),
        token_log_ref=token_log_prob.get("reference"),
    )


def _token_log_prob(logits: Tensor, token: Tensor) -> Tensor:
    """Full-softmax log-probability of each response token: z_y - logsumexp(z), [n]."""
    logits = logits.float() if logits.dtype in (torch.bfloat16, torch.float16) else logits
    return logits.gather(-1, token[:, None])[:, 0] - logits.logsumexp(-1)


def chunks(positions: int, size: int) -> Iterator[slice]:
    """Consecutive slices of at most `size` positions."""
    for start in range(0, positions, size):
        yield slice(start, min(start + size, positions))
