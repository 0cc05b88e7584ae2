"""Distributions on a few known tokens and one outcome that stands for all other tokens.

Lumping never raises a divergence (data processing), and leaves it as it is where p / q is the same
for all lumped tokens.

Shapes: [..., V] over the vocabulary, [..., K] over the known tokens, [..., K + 1] lumped: the known
tokens in their order, and last all others together.
"""

import torch
from torch import Tensor

from geosd.geometry.simplex import in_simplex_dtype, simplex_floor


def lump(logits: Tensor, ids: Tensor) -> Tensor:
    """Log-probabilities of the tokens `ids`, and of all other tokens together: [..., K + 1].

    They are float32 or better, -inf for the others where there are none; gradients flow into
    `logits` [..., V]. The tokens of a row of `ids` [..., K] are different ones.
    """
    (logits,) = in_simplex_dtype(logits)
    others = logits.scatter(-1, ids, -torch.inf)
    # A row of nothing but -inf has no gradient; its sum is not differentiated.
    none = ids.shape[-1] == logits.shape[-1]
    last = others[..., :1] if none else others.logsumexp(-1, keepdim=True)
    return torch.cat([logits.gather(-1, ids), last], -1).log_softmax(-1)


@torch.no_grad()
def append_lump(log_q: Tensor) -> Tensor:
    """Known log-probabilities [..., K], with that of all other tokens behind: [..., K + 1].

    The others have what the known ones leave of 1, and never less than the smallest normal number:
    rounding may make the known ones sum to more. No gradient.
    """
    (log_q,) = in_simplex_dtype(log_q)
    others = torch.log1p(-log_q.exp().sum(-1, keepdim=True).clamp(max=1.0))
    return torch.cat([log_q, others.clamp(min=simplex_floor(log_q.dtype))], -1)
