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

from geosd.geometry import Support, fisher_rao, forward_kl, overlap, union_support
from geosd.models.forward import head_logits, last_hidden_states
from geosd.objectives.objective import Objective, States
from geosd.training.fsdp import through
from geosd.training.packing import Packed


@dataclass(frozen=True)
class View:
    """One model at the response positions: hidden [N, D], and the head that reads it."""

    model: nn.Module
    hidden: Tensor

    def logits(self, at: slice) -> Tensor:
        """Logits of a chunk of positions [n, V]."""
        return head_logits(self.model, self.hidden[at])


def view(model: nn.Module, packed: Packed) -> View:
    """Run a model's body once; the states that predict each response token [N, D]."""
    return View(model, through(model, lambda whole: states_at(whole, packed)))


def states_at(model: nn.Module, packed: Packed) -> Tensor:
    """The hidden states that predict each response token [N, D], of a model whose root is whole."""
    hidden_BTD = last_hidden_states(model, packed.ids, packed.mask)
    return hidden_BTD[packed.row, packed.column]


def local_quantities(
    objective: Objective, views: dict[str, View], token_N: Tensor, top_k: int, chunk: int
) -> dict[str, Tensor]:
    """The objective's per-position quantities, each [N], with gradients to the student alone.

    Args:
        objective: The method.
        views: "student", and of "teacher", "anchor", "reference" those that the method needs.
        token_N: The response tokens.
        top_k: K of the union of top-K supports (paper, Training: 1024).
        chunk: Positions whose logits are held at once.
    """
    student = views["student"]

    def of_chunk(hidden_nD: Tensor, at: slice) -> dict[str, Tensor]:
        logits = {name: other.logits(at) for name, other in views.items() if name != "student"}
        mine = head_logits(student.model, hidden_nD)
        return objective.local(_states(mine, logits, token_N[at], top_k))

    pieces = []
    for at in _chunks(len(token_N), chunk):
        hidden_nD = student.hidden[at]
        if len(token_N) <= chunk:
            pieces.append(of_chunk(hidden_nD, at))
        else:
            # Logits are thrown away after the forward and made again in the backward.
            pieces.append(checkpoint(of_chunk, hidden_nD, at, use_reentrant=False))
    return {name: torch.cat([piece[name] for piece in pieces]) for name in pieces[0]}


def _states(mine: Tensor, others: dict[str, Tensor], token: Tensor, top_k: int) -> States:
    """Student logits [n, V] and the other models' as what an objective reads."""
    on_support = {name: others[name] for name in ("teacher", "anchor") if name in others}
    log_p = log_q = log_anchor = None
    if on_support:
        support = union_support([mine.detach(), *on_support.values()], top_k)
        log_p = support.restrict(mine)
        log_q = support.restrict(others["teacher"]) if "teacher" in others else None
        log_anchor = support.restrict(others["anchor"]) if "anchor" in others else None
    return States(
        log_p=log_p,
        log_q=log_q,
        log_anchor=log_anchor,
        token_log_p=_token_log_prob(mine, token),
        token_log_q=_token_log_prob(others["teacher"], token) if "teacher" in others else None,
        token_log_ref=_token_log_prob(others["reference"], token)
        if "reference" in others
        else None,
    )


def _token_log_prob(logits: Tensor, token: Tensor) -> Tensor:
    """Full-softmax log-probability of each response token: z_y - logsumexp(z), [n]."""
    logits = logits.float() if logits.dtype in (torch.bfloat16, torch.float16) else logits
    return logits.gather(-1, token[:, None])[:, 0] - logits.logsumexp(-1)


@torch.no_grad()
def diagnose(
    views: dict[str, View], top_k: int, chunk: int, positions: int | None = None
) -> dict[str, float]:
    """Means over the visited positions that the step log shows.

    Args:
        views: "student", and of "teacher", "anchor", "reference" those that are to be compared.
        top_k: K of the union of top-K supports.
        chunk: Positions whose logits are held at once.
        positions: Those of the whole step, of which these are a part: the parts' values then add up
            to the means.

    Returns:
        `overlap` sum_i sqrt(p_i q_i) with the teacher; `mismatch` the share of positions where the
        teacher is sure and the student is not (q* >= .8, p* <= .1; paper, Teacher top-token
        support); `drift/anchor` and `drift/pi_0`, mean d_FR (not squared) to the anchor and to the
        base model (paper, Figure mechanism B). Each only where that model is among the views.
    """
    here = len(views["student"].hidden)
    totals: dict[str, float] = {}

    def add(name: str, value_n: Tensor) -> None:
        total = value_n.double().sum().item() / (positions or here)
        totals[name] = totals.get(name, 0.0) + total

    for at in _chunks(here, chunk):
        logits = {name: view.logits(at) for name, view in views.items()}
        support = union_support(list(logits.values()), top_k)
        log = {name: support.restrict(value) for name, value in logits.items()}
        if "teacher" in log:
            add("overlap", overlap(log["student"], log["teacher"]))
            best = log["teacher"].argmax(-1, keepdim=True)
            sure = log["teacher"].gather(-1, best).exp() >= 0.8
            unlikely = log["student"].gather(-1, best).exp() <= 0.1
            add("mismatch", (sure & unlikely)[:, 0])
        if "anchor" in log:
            add("drift/anchor", fisher_rao(log["student"], log["anchor"]))
        if "reference" in log:
            add("drift/pi_0", fisher_rao(log["student"], log["reference"]))
    return totals


class Before:
    """The student's predictions before an update, to measure how far the update moved them.

    Kept on its own top-K support, so N x K numbers and not N x V.
    """

    @torch.no_grad()
    def __init__(self, student: View, top_k: int, chunk: int) -> None:
        """Remember the student's distributions at every position."""
        self.kept: list[tuple[slice, Support, Tensor]] = []
        for at in _chunks(len(student.hidden), chunk):
            logits_nV = student.logits(at)
            support = union_support([logits_nV], top_k)
            self.kept.append((at, support, support.restrict(logits_nV)))

    @torch.no_grad()
    def kl_to(self, after: View, positions: int) -> float:
        """Sum over these positions of KL(old || new) in nats, over all `positions` of the step."""
        total = 0.0
        for at, support, log_old in self.kept:
            log_new = support.restrict(after.logits(at))
            # forward_kl(p, q) is KL(q || p): here the new student stands for p, the old one for q.
            total += forward_kl(log_new, log_old).double().sum().item()
        return total / positions


def _chunks(positions: int, size: int) -> Iterator[slice]:
    for start in range(0, positions, size):
        yield slice(start, min(start + size, positions))
