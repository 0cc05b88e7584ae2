"""Distributions of student and teacher at the states that pi_0 visits.

A state is a response position of a rollout: the student reads the question and the response so far,
the teacher the question, a solution, and the same response. p = student, q = teacher, both pi_0.

N = response positions, n = positions of one chunk, R = ranks, S = union support, V = vocabulary.
"""

from collections.abc import Sequence
from functools import partial

import torch
from torch import Tensor, nn

from geosd.evaluation.alignment import alignment_top_tokens
from geosd.evaluation.kept_batches import KeptBatches
from geosd.geometry import entropy, forward_kl, hellinger, overlap, reverse_kl, union_support
from geosd.training.packing import pack
from geosd.training.policy import policy_response_logits

DIVERGENCES = {"fwdkl": forward_kl, "revkl": reverse_kl, "hellinger": hellinger}
"""Whose gradients are compared (paper, Figure mechanism A)."""


@torch.no_grad()
def survey_states(
    model: nn.Module,
    students: Sequence[Sequence[int]],
    teachers: Sequence[Sequence[int]],
    responses: Sequence[Sequence[int]],
    pad_id: int,
    top_k: int | None,
    batch_size: int,
    chunk: int,
    batches: KeptBatches | None = None,
) -> dict[str, Tensor]:
    """Survey every response position: entropy, overlap, gradient norms of student and teacher.

    The model is pi_0, both student and teacher, which read prompts of their own. A forward pass has
    `batch_size` rollouts; logits of `chunk` positions are held at once. What `batches` keeps of a
    survey that was cut off is not computed again.

    Returns:
        Each [N], positions in the order of the responses: `rollout`, `position`, `token`;
        `entropy` of the student over the whole vocabulary in nats; on the union, as training sees
        it, `overlap` sum_i sqrt(p_i q_i), `top_token` j* = argmax q, `q_star` and `p_star` at j*,
        and `gradient_<divergence>` (see `state_gradient_norms`). `ranked` [N, R]: the teacher's R
        best tokens, best first.

    Raises:
        PreemptionError: The job was asked to stop; every finished batch is kept.

    Source: paper, Figure mechanism A; appendix "Teacher top-token support"; section 5.1.
    """
    device = next(model.parameters()).device

    def survey(start: int) -> dict[str, Tensor]:
        """The columns of the rollouts of one forward pass, from `start` on."""
        at = slice(start, start + batch_size)
        student = pack(students[at], responses[at], pad_id, device)
        teacher = pack(teachers[at], responses[at], pad_id, device)
        lengths = [len(response) for response in responses[at]]
        logits = [policy_response_logits(model, packed) for packed in (student, teacher)]
        columns: dict[str, list[Tensor]] = {
            "rollout": [start + student.row],
            "position": [torch.arange(length) for length in lengths],
            "token": [student.token],
        }
        for first in range(0, len(student.token), chunk):
            positions = slice(first, first + chunk)
            found = _states(*(one.logits(positions) for one in logits), top_k)
            for name, value in found.items():
                columns.setdefault(name, []).append(value)
        return {name: torch.cat(pieces).cpu() for name, pieces in columns.items()}

    if batches is None:
        batches = KeptBatches()
    starts = range(0, len(responses), batch_size)
    surveyed = [batches.made(str(start), partial(survey, start)) for start in starts]
    return {name: torch.cat([batch[name] for batch in surveyed]) for name in surveyed[0]}


def _states(student_nV: Tensor, teacher_nV: Tensor, top_k: int | None) -> dict[str, Tensor]:
    support = union_support([student_nV, teacher_nV], top_k)
    log_p, log_q = support.restrict(student_nV).double(), support.restrict(teacher_nV).double()
    best = log_q.argmax(-1, keepdim=True)
    norms = state_gradient_norms(log_p, log_q)
    return {
        "entropy": entropy(student_nV),
        "overlap": overlap(log_p, log_q),
        "top_token": support.ids.gather(-1, best)[:, 0],
        "q_star": log_q.gather(-1, best)[:, 0].exp(),
        "p_star": log_p.gather(-1, best)[:, 0].exp(),
        **{f"gradient_{name}": norm for name, norm in norms.items()},
        "ranked": alignment_top_tokens(teacher_nV),
    }


def state_gradient_norms(log_p: Tensor, log_q: Tensor) -> dict[str, Tensor]:
    """At each state the norm of each divergence's gradient in the student's logits.

    "Per-state gradient norm" could also be that with respect to all parameters. At one state that
    gradient is J^T grad_z D with a Jacobian J = dz/dtheta that is the same for all divergences, so
    they differ by what is measured here. It also costs a backward pass a state and divergence.

    `log_p` and `log_q` [N, S] are logits or log-probabilities of student and teacher; -inf is
    probability zero, and the teacher is held fixed.

    Returns:
        For each of `DIVERGENCES`, [N]. In closed form grad_z D = -(w - p sum_i w_i) with the
        paper's weights w, e.g. p - q for FwdKL.

    Source: paper, Figure mechanism A and equations (w-fkl), (w-rkl), (w-h).
    """
    norms = {}
    for name, divergence in DIVERGENCES.items():
        with torch.enable_grad():
            z = log_p.detach().requires_grad_()
            # Positions do not know of each other: each has its gradient in that of the sum.
            (gradient,) = torch.autograd.grad(divergence(z, log_q.detach()).sum(), z)
        norms[name] = torch.linalg.vector_norm(gradient, dim=-1)
    return norms
