"""From per-position losses to one number.

Shapes: N = response positions of the step, B = sequences.
"""

from typing import Literal

import torch
from torch import Tensor

LossMean = Literal["sequence", "token"]


def mean_loss(
    loss: Tensor,
    weight: Tensor,
    sequence: Tensor,
    over: LossMean = "sequence",
    sequences: int | None = None,
) -> Tensor:
    """Reduce a per-position loss to one number: its weighted mean over tokens or sequences.

    over="sequence": (1/B) sum_b (sum_{t in b} w_t l_t / sum_{t in b} w_t), the paper's 1/T inside
        the expectation over trajectories: every trajectory counts alike, however long. A row
        without weight counts as 0; B is `sequences`, or where that is None the highest row among
        the positions, plus one, which is read from their device.
    over="token": sum_t w_t l_t / sum_t w_t over the step: every position counts alike.

    `sequence` has the row of each position. Positions of weight 0 add neither value nor gradient;
    the mean is 0 where nothing has weight. All arguments are [N].

    Raises:
        ValueError: `over` is neither, or the shapes differ.

    Source: the paper, equations (distillation-loss) and (prox-term).
    """
    if over not in ("sequence", "token"):
        raise ValueError(
            f"mean_loss: over is {over!r}; allowed are 'sequence' and 'token'.\n"
            "Hint: 'sequence' is the mean of the paper's equation for L_distil."
        )
    if not loss.shape == weight.shape == sequence.shape or loss.dim() != 1:
        raise ValueError(
            f"mean_loss: loss {tuple(loss.shape)}, weight {tuple(weight.shape)} and sequence"
            f" {tuple(sequence.shape)} must be of one shape [N].\nHint: flatten the positions."
        )
    weight = weight.detach()
    counted = weight > 0
    weighted = torch.where(counted, weight * torch.where(counted, loss, 0.0), 0.0)
    if over == "token":
        return weighted.sum() / _or_one(weight.sum())
    rows = sequences
    if rows is None:
        rows = int(sequence.max()) + 1 if len(sequence) else 1
    # A [B, N] product and not a scatter: sums in a fixed order are the same on every run.
    member = sequence == torch.arange(rows, device=sequence.device)[:, None]
    row_loss = (member * weighted).sum(-1)
    row_weight = (member * weight).sum(-1)
    return (row_loss / _or_one(row_weight)).sum() / rows


def mean_loss_terms(length: Tensor, over: LossMean) -> Tensor:
    """How many terms `mean_loss` is a mean of, as seen from the tokens of each sequence [B].

    Over sequences of means over tokens, a token of sequence b weighs 1 / (B T_b): B T_b terms.
    Over tokens, each weighs 1 / sum_b T_b. `length` [B] has T_b, the response tokens.
    """
    if over == "token":
        return length.sum().expand_as(length).float()
    return len(length) * length.float()


def _or_one(total: Tensor) -> Tensor:
    """The divisor, or 1 where it would be 0."""
    return torch.where(total > 0, total, 1.0)
