"""The union of several models' top-K tokens, and distributions renormalised on it.

Shapes: N = positions, V = vocabulary, K = tokens kept of each model, S = slots of the union.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from geosd.geometry.simplex import simplex_dtype

# Rows whose full softmax is normalised at once: 128 rows of 150,000 tokens are 80 MB in float32.
_ROWS = 128


@dataclass(frozen=True, eq=False)
class Support:
    """Token support of each position, on which every model's distribution is compared.

    Attributes:
        ids: [N, S] token ids, ascending within a row; a slot without a token holds 0.
        mask: [N, S] True where the slot holds a token; every token of the union exactly once.
    """

    ids: Tensor
    mask: Tensor

    def restrict(self, logits: Tensor) -> Tensor:
        """Log-probabilities [N, S] of the softmax of `logits` [N, V] restricted to the union.

        They are float32 or better, and carry the gradient; slots without a token are -inf.
        """
        return self.normalise(self.gather(logits))

    def gather(self, logits: Tensor) -> Tensor:
        """The logits [N, S] of the union's tokens, in the dtype of `logits` [N, V].

        Raises:
            ValueError: `logits` are of another number of positions.
        """
        if logits.shape[:-1] != self.ids.shape[:-1]:
            raise ValueError(
                f"Support: logits of shape {tuple(logits.shape)} for {self.ids.shape[0]} positions;"
                " expected [N, V] with the same N.\nHint: slice the support and the logits alike."
            )
        return logits.gather(-1, self.ids)

    def normalise(self, gathered: Tensor) -> Tensor:
        """Log-probabilities of the union's tokens from their logits [N, S]; see `restrict`."""
        return self._without_empty_slots(gathered).log_softmax(-1)

    @torch.no_grad()
    def mass(self, logits: Tensor) -> Tensor:
        """Probability [N] that the full softmax of `logits` [N, V] gives to the union."""
        kept = self._without_empty_slots(self.gather(logits)).logsumexp(-1)
        dtype = kept.dtype
        # In slices of rows, because logsumexp makes a copy as large as its input.
        whole = [part.to(dtype).logsumexp(-1) for part in logits.split(_ROWS)]
        return (kept - torch.cat(whole)).exp().clamp(max=1.0)

    def _without_empty_slots(self, gathered: Tensor) -> Tensor:
        gathered = gathered.to(simplex_dtype(gathered))
        return gathered.masked_fill(~self.mask, -torch.inf)


@torch.no_grad()
def union_support(logits: Sequence[Tensor], k: int | None) -> Support:
    """Per position, the union of the top-k token ids of each of the given logits.

    All logits are [N, V]; None, or k >= V, keeps the whole vocabulary. S is the size of the largest
    union among the N positions, at most min(V, k * len(logits)): what models share is kept once.

    Raises:
        ValueError: No logits, unequal shapes, or k < 1.

    Source: the paper, appendix "Training" (app:exp-rollouts): K = 1024, union of student, teacher
    and checkpoint.
    """
    shapes = {tuple(each.shape) for each in logits}
    none = k is not None and k < 1
    if len(shapes) != 1 or any(len(shape) != 2 for shape in shapes) or none:
        raise ValueError(
            f"union_support: logits of shapes {sorted(shapes)} and k = {k}; expected one or more"
            " tensors of one shape [N, V] and k >= 1.\nHint: the models must share a vocabulary."
        )
    n, v = logits[0].shape
    device = logits[0].device
    if k is None or k >= v:
        ids = torch.arange(v, device=device).expand(n, v)
        return Support(ids, torch.ones(n, v, dtype=torch.bool, device=device))
    # A table of N x V marks and not a sort of the N x K x models ids: several times faster.
    chosen = torch.zeros(n, v, dtype=torch.bool, device=device)
    for each in logits:
        chosen.scatter_(-1, each.topk(k, sorted=False).indices, True)
    row, token = chosen.nonzero().unbind(-1)  # row by row, tokens ascending
    sizes = torch.bincount(row, minlength=n)
    slots = torch.arange(int(sizes.max()) if n else 0, device=device)
    mask = slots < sizes[:, None]
    ids = torch.zeros(mask.shape, dtype=torch.long, device=device)
    ids[mask] = token
    return Support(ids, mask)
