"""The probabilities that student and teacher give the tokens of responses.

N = response tokens of all responses, n = positions of one chunk, V = vocabulary.
"""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn

from geosd.training.packing import pack
from geosd.training.policy import policy_response_logits

REPLACEMENT = "\N{REPLACEMENT CHARACTER}"
"""What a tokenizer writes for bytes that are no character yet."""


@torch.no_grad()
def token_probabilities(
    model: nn.Module,
    prompts: Sequence[Sequence[int]],
    responses: Sequence[Sequence[int]],
    pad_id: int,
    chunk: int,
) -> list[list[float]]:
    """The probability of each token of each response, after its prompt and the tokens before it.

    Logits of `chunk` positions are held at once, and made probabilities in float64. A teacher is
    the model with prompts that hold a solution, too.

    Raises:
        ValueError: A prompt is empty, or there are fewer or more responses.

    Source: paper, section 3: p of the student given x, q of the teacher given (x, c).
    """
    device = next(model.parameters()).device
    packed = pack(prompts, responses, pad_id, device)
    states = policy_response_logits(model, packed)
    pieces: list[Tensor] = []
    for first in range(0, len(packed.token), chunk):
        positions = slice(first, first + chunk)
        log_probabilities_nV = states.logits(positions).double().log_softmax(-1)
        token_n = packed.token[positions]
        pieces.append(log_probabilities_nV.gather(-1, token_n[:, None])[:, 0].exp())
    probabilities_N = torch.cat(pieces).cpu()
    lengths = [len(response) for response in responses]
    return [part.tolist() for part in probabilities_N.split(lengths)]


def token_texts(ids: Sequence[int], text: Callable[[Sequence[int]], str]) -> list[str]:
    """The text that each token adds; joined they are the text of all.

    A token may hold a part of a character, or change how the text before it is written. So each
    prefix is read as a whole, and what is not settled yet is added by a later token.

    Args:
        text: Reads ids of tokens, without special tokens.

    Example:
        >>> letters = {1: "3 + ", 2: "4", 0: ""}
        >>> token_texts([1, 2, 0], lambda ids: "".join(letters[i] for i in ids))
        ['3 + ', '4', '']
    """
    whole = text(ids)
    texts, settled = [], 0
    for count in range(1, len(ids) + 1):
        prefix = text(ids[:count]).rstrip(REPLACEMENT)
        is_settled = len(prefix) >= settled and whole.startswith(prefix)
        until = len(prefix) if is_settled else settled
        if count == len(ids):
            until = len(whole)
        texts.append(whole[settled:until])
        settled = until
    return texts
