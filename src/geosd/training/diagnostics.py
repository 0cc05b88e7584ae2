"""Diagnostics of the visited states: overlap, mismatch, drift, and the KL of an update.

N = response positions of the step, n = of one microbatch.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from geosd.geometry import Support, fisher_rao, forward_kl, overlap, union_support
from geosd.training.chunked_logits import ChunkedLogits, chunks, response_logits
from geosd.training.packing import Microbatch


@torch.no_grad()
def diagnose_microbatches(
    student: nn.Module,
    student_states: list[Tensor],
    references: list[dict[str, ChunkedLogits]],
    top_k: int,
    chunk: int,
    positions: int,
) -> tuple[dict[str, float], list[OldPolicy]]:
    """Diagnostics of a step's microbatches: shares of its mean overlap, mismatch and drift.

    Args:
        student: Has the output head, gathered.
        student_states: Its hidden states [n, D] by microbatch.
        references: "teacher", "anchor" and "reference", by microbatch.
        top_k: K of the union of top-K supports.
        chunk: Positions whose logits are held at once.
        positions: N.

    Returns:
        `overlap` sum_i sqrt(p_i q_i) with the teacher; `mismatch` the share of positions where the
        teacher is sure and the student is not (q* >= .8, p* <= .1; paper, Teacher top-token
        support); `drift/anchor` and `drift/pi_0`, mean d_FR (not squared) to the anchor and to the
        base model (paper, Figure mechanism B). The second value is for `kl_of_update`.
    """
    shares = dict.fromkeys(("overlap", "mismatch", "drift/anchor", "drift/pi_0"), 0.0)
    old_policies = []
    for hidden_nD, others in zip(student_states, references, strict=True):
        models = {**others, "student": ChunkedLogits(student, hidden_nD)}
        old_policies.append(OldPolicy(models["student"], top_k, chunk))
        for at in chunks(len(hidden_nD), chunk):
            logits = {name: model.logits(at) for name, model in models.items()}
            support = union_support(list(logits.values()), top_k)
            log = {name: support.restrict(value) for name, value in logits.items()}
            best = log["teacher"].argmax(-1, keepdim=True)
            sure = log["teacher"].gather(-1, best).exp() >= 0.8
            unlikely = log["student"].gather(-1, best).exp() <= 0.1
            values = {
                "overlap": overlap(log["student"], log["teacher"]),
                "mismatch": sure & unlikely,
                "drift/anchor": fisher_rao(log["student"], log["anchor"]),
                "drift/pi_0": fisher_rao(log["student"], log["reference"]),
            }
            for name, value_n in values.items():
                shares[name] += value_n.double().sum().item() / positions
    return shares, old_policies


class OldPolicy:
    """The student's predictions before an update, to measure how far the update moved them.

    Kept on its own top-K support, so N x K numbers and not N x V.
    """

    @torch.no_grad()
    def __init__(self, student: ChunkedLogits, top_k: int, chunk: int) -> None:
        """Remember the student's distributions at every position."""
        self.predictions: list[tuple[slice, Support, Tensor]] = []
        for at in chunks(len(student.hidden), chunk):
            logits_nV = student.logits(at)
            support = union_support([logits_nV], top_k)
            self.predictions.append((at, support, support.restrict(logits_nV)))

    @torch.no_grad()
    def kl_to(self, after: ChunkedLogits, positions: int) -> float:
        """Sum over these positions of KL(old || new) in nats, over all `positions` of the step."""
        total = 0.0
        for at, support, log_old in self.predictions:
            log_new = support.restrict(after.logits(at))
            # forward_kl(p, q) is KL(q || p): here the new student stands for p, the old one for q.
            total += forward_kl(log_new, log_old).double().sum().item()
        return total / positions


@torch.no_grad()
def kl_of_update(
    student: nn.Module,
    microbatches: list[Microbatch],
    old_policies: list[OldPolicy],
    positions: int,
) -> float:
    """KL(old || new) of the student across an update, in nats: this rank's share of its mean."""
    return sum(
        old.kl_to(response_logits(student, microbatch.student), positions)
        for microbatch, old in zip(microbatches, old_policies, strict=True)
    )
