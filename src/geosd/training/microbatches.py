"""How a step's responses are divided: over the ranks, and on each rank over its passes.

B = responses of the step, b = of one part, N = response tokens of the step.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from geosd.objectives.reduce import LossMean
from geosd.training.packing import Packed, pack
from geosd.training.rollouts import Rollouts


@dataclass(frozen=True)
class Part:
    """Some consecutive responses of a step, which go through the models together.

    Attributes:
        rows: Which responses of the step.
        at: Their positions among the step's N.
        among: How many tokens of the step, prompts included, come before theirs, and how many it
            has: K-FAC draws from all of them.
        mine: The sequences as the student reads them.
        theirs: The sequences as the teacher reads them.
    """

    rows: slice
    at: slice
    among: tuple[int, int]
    mine: Packed
    theirs: Packed


def parts_of(
    rollouts: Rollouts,
    rank: int,
    ranks: int,
    microbatch: int | None,
    pad_id: int,
    device: torch.device,
) -> list[Part]:
    """This rank's responses, in passes; every rank has equally many.

    Args:
        rollouts: Those of the whole step, the same on every rank.
        rank: Of this process.
        ranks: How many share the responses.
        microbatch: Most responses of one pass; None takes a rank's share at once.
        pad_id: Fills the right of short rows.
        device: Where the tensors are made.

    Raises:
        ValueError: The responses cannot be shared out evenly. A rank without a response could not
            take part in gathering the weights.
    """
    responses = len(rollouts.responses)
    share, rest = divmod(responses, ranks)
    if rest:
        raise ValueError(
            f"{responses} responses cannot be shared evenly by {ranks} ranks.\nHint: let torchrun"
            " start as many training processes as divide training.problems (and training.group)."
        )
    ends = _sums([len(response) for response in rollouts.responses])
    tokens = _sums(
        [len(p) + len(r) for p, r in zip(rollouts.student, rollouts.responses, strict=True)]
    )
    found = []
    for start in range(rank * share, (rank + 1) * share, microbatch or share):
        stop = min(start + (microbatch or share), (rank + 1) * share)
        rows = slice(start, stop)
        answers = rollouts.responses[rows]
        found.append(
            Part(
                rows=rows,
                at=slice(ends[start], ends[stop]),
                among=(tokens[start], tokens[-1]),
                mine=pack(rollouts.student[rows], answers, pad_id, device),
                theirs=pack(rollouts.teacher[rows], answers, pad_id, device),
            )
        )
    return found


def sequence_of(rollouts: Rollouts, device: torch.device) -> Tensor:
    """The response of each position of the step [N]."""
    lengths = torch.tensor([len(each) for each in rollouts.responses], device=device)
    return torch.arange(len(lengths), device=device).repeat_interleave(lengths)


def terms_of_mean(part: Part, rollouts: Rollouts, loss_mean: LossMean) -> Tensor:
    """How many terms the step's loss is a mean of, as seen from each sequence of a part [b].

    Over sequences of means over tokens, a token of sequence b weighs 1 / (B T_b).
    """
    lengths = [len(response) for response in rollouts.responses]
    device = part.mine.ids.device
    if loss_mean == "token":
        return torch.full((len(part.mine.ids),), float(sum(lengths)), device=device)
    return len(lengths) * torch.tensor(lengths[part.rows], dtype=torch.float32, device=device)


def _sums(counts: list[int]) -> list[int]:
    sums = [0]
    for count in counts:
        sums.append(sums[-1] + count)
    return sums
