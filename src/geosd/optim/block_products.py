"""Products of gradients with the inverted blocks of K-FAC's factors, for one layer or for many.

Shapes: L = layers of one shape, O/I = their output/input dimensions, c = blocks of a run, b = their
size.
"""

from __future__ import annotations

import torch
from torch import Tensor

from geosd.optim.blocks import BlockFactors, Inverse

# Elements of gradients of one shape that are preconditioned together; a larger one goes alone.
STACK = 2**22


def precondition_stack(
    grads: list[Tensor], layers: list[str], input_owners: list[str], factors: BlockFactors
) -> None:
    """Precondition weight gradients [O, I] of one shape together, in place: a few batched products.

    For a process that owns all blocks.

    Args:
        grads: Of the layers' weights, each replaced by (G + shift I)^-1 dW (A + shift I)^-1.
        layers: Names of the layers; "<layer>.G" is a layer's output factor.
        input_owners: For each layer, the one whose input factor "<owner>.A" it uses.
        factors: Have the damped inverses.
    """
    stack_LOI = torch.stack([grad.to(factors.compute) for grad in grads])
    inverse_g = _stacked([factors.inverse(f"{name}.G") for name in layers])
    inverse_a = _stacked([factors.inverse(f"{owner}.A") for owner in input_owners])
    solved_LOI = solve_right(inverse_a, solve_left(inverse_g, stack_LOI))
    for grad, solved_OI in zip(grads, solved_LOI, strict=True):
        grad.copy_(solved_OI)


def _stacked(inverses: list[Inverse]) -> Inverse:
    """Equal runs of several inverses as one, with blocks [L, c, b, b]."""
    for same in zip(*inverses, strict=True):
        yield same[0][0], torch.stack([blocks_cbb for _, blocks_cbb in same])


def solve_left(inverse: Inverse, grad_OI: Tensor) -> Tensor:
    """Multiply a gradient dW by (G + sqrt(gamma) I)^-1 from the left, over blocks of its rows.

    Rows of one block meet only rows of the same block, so a shard of whole row blocks can be
    preconditioned where it lies. Inverse and gradient may have one leading dimension of layers.
    """
    parts = []
    for run, blocks_cbb in inverse:
        rows_cbI = grad_OI[..., run.start : run.stop, :].unflatten(-2, (run.count, run.size))
        parts.append(torch.matmul(blocks_cbb, rows_cbI).flatten(-3, -2))
    return parts[0] if len(parts) == 1 else torch.cat(parts, dim=-2)


def solve_right(inverse: Inverse, grad_OI: Tensor) -> Tensor:
    """Multiply a gradient dW by (A + sqrt(gamma) I)^-1 from the right, over blocks of its columns.

    Inverse and gradient may have one leading dimension of layers.
    """
    parts = []
    for run, blocks_cbb in inverse:
        columns_Ocb = grad_OI[..., run.start : run.stop].unflatten(-1, (run.count, run.size))
        solved_cOb = torch.matmul(columns_Ocb.transpose(-3, -2), blocks_cbb)
        parts.append(solved_cOb.transpose(-3, -2).flatten(-2))
    return parts[0] if len(parts) == 1 else torch.cat(parts, dim=-1)
