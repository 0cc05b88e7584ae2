"""Diagnostics of the visited states: overlap, mismatch, drift, and the KL of an update.

N = response positions of the step, n = of one microbatch.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from geosd.geometry import Support, fisher_rao, forward_kl, overlap, union_support
from geosd.training.chunked_logits import ChunkedLogits, chunks, response_logits
from geosd.training.microbatches import Microbatch
from geosd.training.processes import Ranks


@torch.no_grad()
def diagnose_microbatches(
    student: nn.Module,
    student_states: list[Tensor],
    references: list[dict[str, ChunkedLogits]],
    top_k: int,
    chunk: int,
    positions: int,
) -> tuple[list[dict[str, float]], list[OldPolicy]]:
    """For each microbatch its share of the step's diagnostics, and the student's predictions.

    Args:
        student: Has the output head, gathered.
        student_states: Its hidden states [n, D].
        references: Teacher, anchor and pi_0.
        top_k: K of the union of top-K supports.
        chunk: Positions whose logits are held at once.
        positions: N.
    """
    diagnosed, old_policies = [], []
    for hidden_nD, others in zip(student_states, references, strict=True):
        current = ChunkedLogits(student, hidden_nD)
        old_policies.append(OldPolicy(current, top_k, chunk))
        diagnosed.append(diagnose({**others, "student": current}, top_k, chunk, positions))
    return diagnosed, old_policies


@torch.no_grad()
def diagnose(
    models: dict[str, ChunkedLogits], top_k: int, chunk: int, positions: int | None = None
) -> dict[str, float]:
    """Means over the visited positions that the step log shows.

    Args:
        models: "student", and those of "teacher", "anchor", "reference" that are to be compared.
        top_k: K of the union of top-K supports.
        chunk: Positions whose logits are held at once.
        positions: Of the whole step, where these are only some of them: the values of all
            microbatches then add up to the means.

    Returns:
        `overlap` sum_i sqrt(p_i q_i) with the teacher; `mismatch` the share of positions where the
        teacher is sure and the student is not (q* >= .8, p* <= .1; paper, Teacher top-token
        support); `drift/anchor` and `drift/pi_0`, mean d_FR (not squared) to the anchor and to the
        base model (paper, Figure mechanism B). Each only where that model is among the models.
    """
    size = len(models["student"].hidden)
    totals: dict[str, float] = {}

    def add(name: str, value_n: Tensor) -> None:
        total = value_n.double().sum().item() / (positions or size)
        totals[name] = totals.get(name, 0.0) + total

    for at in chunks(size, chunk):
        logits = {name: model.logits(at) for name, model in models.items()}
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
    """This rank's share of the mean KL(old || new) over the step's positions, in nats."""
    total = 0.0
    for microbatch, old in zip(microbatches, old_policies, strict=True):
        total += old.kl_to(response_logits(student, microbatch.student), positions)
    return total


def sum_microbatches(
    by_microbatch: list[dict[str, float]], ranks: Ranks, device: torch.device
) -> dict[str, float]:
    """The sum over microbatches and ranks of values that each microbatch has."""
    totals = [sum(values[name] for values in by_microbatch) for name in by_microbatch[0]]
    sums = torch.tensor(totals, dtype=torch.float64, device=device)
    return dict(zip(by_microbatch[0], ranks.all_reduce(sums).tolist(), strict=True))
