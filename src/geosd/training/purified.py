"""A teacher without what the solution alone would make it say: Purified OPSD.

Three passes of pi_0 read one response: after the question (P_0), after question and solution (T),
and after the solution alone (R). What T and R share is induced by the solution, whatever the
question is. What is left, log T - log R, moves P_0 to the target of the student.

n = positions of one chunk, D = hidden width, V = vocabulary.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from geosd.geometry.simplex import simplex_dtype
from geosd.training.chunked_logits import ChunkedLogits

LARGEST_CHANGE = 10.0
"""c in nats, to which the change of a token's log-probability is bounded."""


@dataclass(frozen=True)
class PurifiedLogits:
    """log P_0 + c tanh((d - mean d) / c) with d = log T - log R, in chunks as `ChunkedLogits`.

    `alone` is P_0, `informed` T, and `without_question` R. The mean of d is over the vocabulary.

    Source: Shen et al., "Purified OPSD" (arXiv 2607.02234), with their c = 10 and beta = 1: by its
    abstract and by what others write of its equations; docs/reading.md.
    """

    alone: ChunkedLogits
    informed: ChunkedLogits
    without_question: ChunkedLogits

    @property
    def hidden(self) -> Tensor:
        """The hidden states [N, 3 D] of the three passes."""
        parts = (self.alone, self.informed, self.without_question)
        return torch.cat([part.hidden for part in parts], dim=-1)

    @torch.no_grad()
    def logits(self, at: slice) -> Tensor:
        """Logits of a chunk of positions [n, V]: log-probabilities, but for a constant in each."""
        change = _log_probabilities(self.informed, at)
        change -= _log_probabilities(self.without_question, at)
        change -= change.mean(-1, keepdim=True)
        change = change.div_(LARGEST_CHANGE).tanh_().mul_(LARGEST_CHANGE)
        return change.add_(_log_probabilities(self.alone, at))


def _log_probabilities(model: ChunkedLogits, at: slice) -> Tensor:
    """Full-softmax log-probabilities [n, V]."""
    logits = model.logits(at)
    return logits.to(simplex_dtype(logits)).log_softmax(-1)
