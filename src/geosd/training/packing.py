"""Prompts and responses laid side by side, and where the model predicts each response token.

The teacher reads another prompt than the student, so the same response token stands at another
column of its row. Both are asked for the state that PREDICTS the token, one column before it; the
first response token is predicted at the prompt's last column. Both list their N positions in the
same order (row by row, token by token), so position n of the student and position n of the teacher
predict the same token: that is all the alignment there is.

B = sequences, T = padded length, N = response tokens of all sequences.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from geosd.models.forward import common_forward_prefix


@dataclass(frozen=True)
class Packed:
    """Right-padded sequences, ids and mask [B, T], and their response positions.

    All are on the models' device but the mask, which stays on the host: K-FAC draws its positions
    there, and would wait for the device to know them.


    Each of the N response tokens has its sequence, `row`, the `column` whose next token it is, and
    the `token` itself. The first `common_forward_prefix` columns are the same in all rows and
    predict no response token: all but the last token of the prompt where all rows have one (GRPO).
    """

    ids: Tensor
    mask: Tensor
    row: Tensor
    column: Tensor
    token: Tensor
    common_prefix: int = 0


def pack(
    prompts: Sequence[Sequence[int]],
    responses: Sequence[Sequence[int]],
    pad_id: int,
    device: torch.device | str = "cpu",
) -> Packed:
    """Join prompts and responses, right-padded; ValueError if one is empty or numbers differ."""
    if len(prompts) != len(responses):
        raise ValueError(f"{len(prompts)} prompts but {len(responses)} responses.")
    if empty := [i for i, prompt in enumerate(prompts) if not prompt]:
        raise ValueError(
            f"prompt {empty[0]} is empty: nothing predicts the first token of its response."
            "\nHint: a prompt needs at least one token, e.g. the tokenizer's beginning of sequence."
        )
    rows = [torch.tensor([*p, *r]) for p, r in zip(prompts, responses, strict=True)]
    ids_BT = pad_sequence(rows, batch_first=True, padding_value=pad_id)
    length_B = torch.tensor(list(map(len, rows)))
    last_of_prompt_B = torch.tensor([len(prompt) - 1 for prompt in prompts])
    column_T = torch.arange(ids_BT.shape[1])
    before_end_BT = column_T < length_B[:, None] - 1
    row, column = ((column_T >= last_of_prompt_B[:, None]) & before_end_BT).nonzero(as_tuple=True)
    return Packed(
        ids=ids_BT.to(device),
        mask=column_T < length_B[:, None],
        row=row.to(device),
        column=column.to(device),
        token=ids_BT[row, column + 1].to(device),
        common_prefix=common_forward_prefix(prompts),
    )
