"""How much mass a student gives to the tokens that the teacher ranks first, over a training.

It is measured at fixed states: those that pi_0 visits and where it is least certain. Tokens are
ranked in two ways. By pi_0 with the solution, also fixed: a rank is then the same token for every
checkpoint of every method, and what changes is the student alone. And by the checkpoint itself with
the solution, the live teacher of training: a rank may then be another token from one checkpoint to
the next.

M = selected positions of all rollouts, R = ranks, V = vocabulary.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from geosd.models.output_head import head_logits
from geosd.training.packing import pack
from geosd.training.policy import policy_response_logits

RANKINGS = ("pi_0", "live")
RANKS = 8
"""Tokens of the teacher that the paper follows (section 5.1: ranks 1-8)."""


@dataclass(frozen=True)
class AlignmentRollout:
    """A rollout of pi_0 with the positions and tokens at which every checkpoint's mass is measured.

    `student` are the ids of the prompt with the question alone, `teacher` of that with a solution.
    """

    problem_id: str
    student: tuple[int, ...]
    teacher: tuple[int, ...]
    response: tuple[int, ...]
    selected: tuple[int, ...]
    """Positions of the response at which pi_0 is least certain, ascending."""
    ranked: tuple[tuple[int, ...], ...]
    """At each position, the tokens that pi_0 with the solution prefers, best first."""


@torch.no_grad()
def alignment_mass(
    model: nn.Module, rollouts: Sequence[AlignmentRollout], pad_id: int, batch_size: int, chunk: int
) -> dict[str, Tensor]:
    """The student's mean mass on the tokens that the teacher ranks 1..R, at fixed positions.

    The model is the student, and with the solution the live teacher. A forward pass has
    `batch_size` rollouts; logits of `chunk` positions are held at once.

    Returns:
        For each of `RANKINGS`, [R] in float64: the mean over all selected positions of all
        rollouts of the student's probability (over the whole vocabulary) of that rank's token.

    Raises:
        ValueError: No position is selected.

    Source: paper, section 5.1 and Figure alignment.
    """
    totals: dict[str, Tensor] = {}
    positions = sum(len(rollout.selected) for rollout in rollouts)
    if not positions:
        raise ValueError(
            f"none of the {len(rollouts)} rollouts has a selected position.\nHint: let the workflow"
            " make the states of this study again."
        )
    for start in range(0, len(rollouts), batch_size):
        batch = rollouts[start : start + batch_size]
        student_MD = _hidden(model, batch, [r.student for r in batch], pad_id)
        teacher_MD = _hidden(model, batch, [r.teacher for r in batch], pad_id)
        ranked = [tokens for rollout in batch for tokens in rollout.ranked]
        fixed_MR = torch.tensor(ranked, device=student_MD.device)
        for at in range(0, len(student_MD), chunk):
            here = slice(at, at + chunk)
            p_mV = head_logits(model, student_MD[here]).float().softmax(-1)
            live_mR = alignment_top_tokens(head_logits(model, teacher_MD[here]))
            for ranking, tokens_mR in zip(RANKINGS, (fixed_MR[here], live_mR), strict=True):
                mass_R = p_mV.gather(-1, tokens_mR).double().sum(0)
                totals[ranking] = totals.get(ranking, 0) + mass_R
    return {ranking: (total / positions).cpu() for ranking, total in totals.items()}


def _hidden(
    model: nn.Module,
    batch: Sequence[AlignmentRollout],
    prompts: Sequence[Sequence[int]],
    pad_id: int,
) -> Tensor:
    """States at the selected positions, rollout after rollout [M, D]."""
    packed = pack(prompts, [r.response for r in batch], pad_id, next(model.parameters()).device)
    chosen, before = [], 0
    for rollout in batch:
        chosen += [before + position for position in rollout.selected]
        before += len(rollout.response)
    return policy_response_logits(model, packed, every_position=True).hidden[chosen]


def alignment_top_tokens(logits_NV: Tensor) -> Tensor:
    """Token ids of the ranks 1 to `RANKS` at each position, best first [N, R]."""
    return logits_NV.topk(min(RANKS, logits_NV.shape[-1]), dim=-1).indices
