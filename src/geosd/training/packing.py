"""Prompts and responses laid side by side, and where the model predicts each response token.

The teacher reads another prompt than the student, so the same response token stands at another
column of its row. Both are asked for the state that PREDICTS the token, one column before it; the
first response token is predicted at the prompt's last column. Both list their N positions in the
same order (row by row, token by token), so position n of the student and position n of the teacher
predict the same token: that is all the alignment there is.

A step's responses are divided over the ranks, and on each rank over passes: the microbatches.

B = sequences, b = those of a microbatch, T = padded length, N = response tokens of all sequences.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from os.path import commonprefix

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from geosd.training.rollouts import Rollouts


@dataclass(frozen=True)
class Packed:
    """Right-padded sequences, ids and mask [B, T], and their response positions.

    Each of the N response tokens has its sequence, `row`, the `column` whose next token it is, and
    the `token` itself. The first `common_prefix` columns are the same in all rows and predict no
    response token: all but the last token of the prompt where all rows have one (GRPO).
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
    tensors = ids_BT, column_T < length_B[:, None], row, column, ids_BT[row, column + 1]
    common_prefix = len(commonprefix([list(prompt[:-1]) for prompt in prompts]))
    return Packed(*(tensor.to(device) for tensor in tensors), common_prefix)


@dataclass(frozen=True)
class Microbatch:
    """Some consecutive responses of a step, as student and teacher read them together.

    `rows` are among the step's responses, `positions` among its N response tokens. K-FAC draws from
    all `step_tokens`, prompts included, of which `tokens_before` come before these responses.
    """

    rows: slice
    positions: slice
    tokens_before: int
    step_tokens: int
    student: Packed
    teacher: Packed


def responses_per_rank(responses: int, ranks: int) -> int:
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
    per_rank = responses_per_rank(len(responses), ranks)
    starts = [0, *accumulate(map(len, responses))]
    tokens = [0, *accumulate(len(p) + len(r) for p, r in zip(prompts, responses, strict=True))]
    microbatches = []
    size, end = microbatch or per_rank, (rank + 1) * per_rank
    for start in range(rank * per_rank, end, size):
        stop = min(start + size, end)
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
