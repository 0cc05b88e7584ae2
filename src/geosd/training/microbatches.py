"""How a step's responses are divided: over the ranks, and on each rank over its passes.

B = responses of the step, b = of one microbatch, N = response tokens of the step.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import accumulate

import torch
from torch import Tensor

from geosd.objectives.reduce import LossMean
from geosd.training.packing import Packed, pack
from geosd.training.rollouts import Rollouts


@dataclass(frozen=True)
class Microbatch:
    """Some consecutive responses of a step, which go through the models together.

    Attributes:
        rows: Which responses of the step.
        positions: Their response tokens among the step's N.
        tokens_before: Tokens of the step, prompts included, that come before theirs.
        step_tokens: Tokens of the step, prompts included: K-FAC draws from all of them.
        student: The sequences as the student reads them.
        teacher: The sequences as the teacher reads them.
    """

    rows: slice
    positions: slice
    tokens_before: int
    step_tokens: int
    student: Packed
    teacher: Packed


def split_into_microbatches(
    rollouts: Rollouts,
    rank: int,
    ranks: int,
    microbatch: int | None,
    pad_id: int,
    device: torch.device,
) -> list[Microbatch]:
    """This rank's responses, in passes; every rank has equally many.

    Args:
        rollouts: Those of the whole step, the same on every rank.
        rank: Of this process.
        ranks: How many share the responses.
        microbatch: Most responses of one pass; None takes all of a rank's at once.
        pad_id: Fills the right of short rows.
        device: Where the tensors are made.

    Raises:
        ValueError: The responses cannot be shared out evenly. A rank without a response could not
            take part in gathering the weights.
    """
    per_rank, remainder = divmod(len(rollouts.responses), ranks)
    if remainder:
        raise ValueError(
            f"{len(rollouts.responses)} responses cannot be shared evenly by {ranks} ranks.\nHint:"
            " let accelerate start as many training processes as divide training.problems (and"
            " training.group)."
        )
    prompts, responses = rollouts.student_prompts, rollouts.responses
    starts = [0, *accumulate(map(len, responses))]
    tokens = [0, *accumulate(len(p) + len(r) for p, r in zip(prompts, responses, strict=True))]
    microbatches = []
    end = (rank + 1) * per_rank
    for start in range(rank * per_rank, end, microbatch or per_rank):
        stop = min(start + (microbatch or per_rank), end)
        rows = slice(start, stop)
        microbatches.append(
            Microbatch(
                rows=rows,
                positions=slice(starts[start], starts[stop]),
                tokens_before=tokens[start],
                step_tokens=tokens[-1],
                student=pack(prompts[rows], responses[rows], pad_id, device),
                teacher=pack(rollouts.teacher_prompts[rows], responses[rows], pad_id, device),
            )
        )
    return microbatches


def response_index(rollouts: Rollouts, device: torch.device) -> Tensor:
    """The response of each position of the step [N]."""
    lengths = torch.tensor([len(each) for each in rollouts.responses], device=device)
    return torch.arange(len(lengths), device=device).repeat_interleave(lengths)


def loss_terms_per_sequence(
    microbatch: Microbatch, rollouts: Rollouts, loss_mean: LossMean
) -> Tensor:
    """How many terms the step's loss is a mean of, as seen from each sequence [b].

    Over sequences of means over tokens, a token of sequence b weighs 1 / (B T_b).
    """
    lengths = [len(response) for response in rollouts.responses]
    device = microbatch.student.ids.device
    if loss_mean == "token":
        return torch.full((len(microbatch.student.ids),), float(sum(lengths)), device=device)
    lengths_b = torch.tensor(lengths[microbatch.rows], dtype=torch.float32, device=device)
    return len(lengths) * lengths_b
