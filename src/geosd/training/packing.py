"""Prompts and responses laid side by side, and where the model predicts each response token.

The teacher reads another prompt than the student, so the same response token stands at another
column of its row. Both are asked for the state that PREDICTS the token, one column before it; the
first response token is predicted at the prompt's last column. Both list their N positions in the
same order (row by row, token by token), so position n of the student and position n of the teacher
predict the same token: that is all the alignment there is.

B = sequences, T = padded length, N = response tokens of all sequences.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class Packed:
    """Right-padded sequences and their response positions.

    Attributes:
        ids: Token ids [B, T].
        mask: True where there is a token, not padding [B, T].
        row: Sequence of each response token [N].
        column: Column whose next token is that response token [N].
        token: The response token itself [N].
    """

    ids: Tensor
    mask: Tensor
    row: Tensor
    column: Tensor
    token: Tensor


def pack(
    prompts: Sequence[Sequence[int]],
    responses: Sequence[Sequence[int]],
    pad_id: int,
    device: torch.device | str = "cpu",
) -> Packed:
    """Join each prompt with its response.

    Args:
        prompts: Token ids of each prompt; none is empty, or its response has no first predictor.
        responses: Token ids of each response.
        pad_id: Fills the right of short rows.
        device: Where the tensors are made.

    Raises:
        ValueError: A prompt is empty, or there are not as many responses as prompts.
    """
    if len(prompts) != len(responses):
        raise ValueError(f"{len(prompts)} prompts but {len(responses)} responses.")
    if empty := [i for i, prompt in enumerate(prompts) if not prompt]:
        raise ValueError(
            f"prompt {empty[0]} is empty: nothing predicts the first token of its response."
            "\nHint: a prompt needs at least one token, e.g. the tokenizer's beginning of sequence."
        )
    width = max(len(p) + len(r) for p, r in zip(prompts, responses, strict=True))
    ids_BT = torch.full((len(prompts), width), pad_id, dtype=torch.long)
    mask_BT = torch.zeros((len(prompts), width), dtype=torch.bool)
    row, column, token = [], [], []
    for b, (prompt, response) in enumerate(zip(prompts, responses, strict=True)):
        length = len(prompt) + len(response)
        ids_BT[b, :length] = torch.tensor([*prompt, *response])
        mask_BT[b, :length] = True
        row += [b] * len(response)
        column += range(len(prompt) - 1, length - 1)
        token += response
    return Packed(
        ids_BT.to(device),
        mask_BT.to(device),
        torch.tensor(row, dtype=torch.long, device=device),
        torch.tensor(column, dtype=torch.long, device=device),
        torch.tensor(token, dtype=torch.long, device=device),
    )
