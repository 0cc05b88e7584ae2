"""A step's responses, divided over the ranks, and on each rank over passes: the microbatches."""

from dataclasses import dataclass
from itertools import accumulate

import torch

from geosd.training.packing import Packed, pack
from geosd.training.rollouts import Rollouts


@dataclass(frozen=True)
class Microbatch:
    """Some consecutive responses of a step, as student and teacher read them together.

    `rows` are among the step's responses, `positions` among its N response tokens. A step has
    `step_tokens` tokens of prompts and responses, from which K-FAC draws its samples; the first
    `tokens_before` of these tokens belong to earlier microbatches. `solution_only` is what a
    teacher without the question reads, where the rollouts have prompts for it.
    """

    rows: slice
    positions: slice
    tokens_before: int
    step_tokens: int
    student: Packed
    teacher: Packed
    solution_only: Packed | None = None


def microbatch_responses_per_rank(responses: int, ranks: int) -> int:
    """How many responses each rank takes; ValueError if they cannot be shared evenly."""
    per_rank, remainder = divmod(responses, ranks)
    if remainder:
        raise ValueError(
            f"{responses} responses cannot be shared evenly by {ranks} ranks.\nHint: let"
            " accelerate start as many training processes as divide training.problems,"
            " training.final_rollouts (and training.group)."
        )
    return per_rank


def split_into_microbatches(
    rollouts: Rollouts,
    rank: int,
    ranks: int,
    microbatch: int | None,
    pad_id: int,
    device: torch.device,
) -> list[Microbatch]:
    """A rank's microbatches of at most `microbatch` responses (None: of all); as many on each."""
    prompts, responses = rollouts.student_prompts, rollouts.responses
    solution_prompts = rollouts.solution_prompts
    per_rank = microbatch_responses_per_rank(len(responses), ranks)
    starts = [0, *accumulate(map(len, responses))]
    tokens = [0, *accumulate(len(p) + len(r) for p, r in zip(prompts, responses, strict=True))]
    microbatches = []
    size, end = microbatch or per_rank, (rank + 1) * per_rank
    for start in range(rank * per_rank, end, size):
        stop = min(start + size, end)
        rows = slice(start, stop)
        solution_only = None
        if solution_prompts is not None:
            solution_only = pack(solution_prompts[rows], responses[rows], pad_id, device)
        microbatches.append(
            Microbatch(
                rows=rows,
                positions=slice(starts[start], starts[stop]),
                tokens_before=tokens[start],
                step_tokens=tokens[-1],
                student=pack(prompts[rows], responses[rows], pad_id, device),
                teacher=pack(rollouts.teacher_prompts[rows], responses[rows], pad_id, device),
                solution_only=solution_only,
            )
        )
    return microbatches
