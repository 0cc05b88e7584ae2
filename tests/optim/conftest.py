"""Small models in float64, and factors as dense matrices."""

from __future__ import annotations

import pytest
import torch
from cases import decoder
from torch import nn

torch.set_num_threads(1)


@pytest.fixture
def make_decoder():
    """A function from an architecture and a seed to a tiny decoder in float64."""

    def made(family: str = "Qwen3", seed: int = 0) -> nn.Module:
        return decoder(family, seed).double()

    return made


@pytest.fixture
def batch():
    """Ids [3, 8] and a mask with padding on the left of two rows."""
    generator = torch.Generator().manual_seed(5)
    ids = torch.randint(1, 31, (3, 8), generator=generator)
    mask = torch.ones(3, 8, dtype=torch.bool)
    mask[0, :3] = mask[2, :1] = False
    return ids, mask


@pytest.fixture
def response_loss():
    """Mean over all rows of the next-token loss of the last four tokens: the prompt is masked."""

    def loss(model: nn.Module, ids: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        logits = model(input_ids=ids, attention_mask=mask.long()).logits[:, -5:-1]
        return nn.functional.cross_entropy(logits.flatten(0, 1), ids[:, -4:].flatten())

    return loss


@pytest.fixture
def dense():
    """The bias-corrected average of a factor as one matrix [D, D]."""

    def matrix(kfac, name: str) -> torch.Tensor:
        numbers = list(kfac.factors.dims)
        full = torch.zeros(kfac.factors.dims[name], kfac.factors.dims[name], dtype=torch.float64)
        blocks = []
        for owner, stack in kfac.factors.averages(kfac.decay):
            blocks += [b for o, b in zip(owner, stack, strict=True) if numbers[o] == name]
        start = 0
        # Longer blocks come first in a factor, whatever order their stacks have.
        for block in sorted(blocks, key=lambda b: -len(b)):
            full[start : start + len(block), start : start + len(block)] = block.double()
            start += len(block)
        return full

    return matrix
