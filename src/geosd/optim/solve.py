"""Multiply a gradient by block-diagonal inverses from the left and from the right.

Shapes: O/I = output/input dimensions of a layer, c = blocks of a run, b = their size.
"""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import Tensor

from geosd.optim.partition import BlockRange

Inverse = Iterable[tuple[BlockRange, Tensor]]  # runs of a factor, each with its blocks [c, b, b]


def solve_left(inverse: Inverse, grad_OI: Tensor) -> Tensor:
    """(G + sqrt(gamma) I)^-1 dW, for a block-diagonal inverse over the rows of dW.

    Rows of one block meet only rows of the same block, so a shard of whole row blocks can be
    preconditioned where it lies.
    """
    parts = []
    for run, blocks_cbb in inverse:
        rows = grad_OI[run.start : run.stop].unflatten(0, (run.count, run.size))
        parts.append(torch.bmm(blocks_cbb, rows).flatten(0, 1))
    return parts[0] if len(parts) == 1 else torch.cat(parts)


def solve_right(inverse: Inverse, grad_OI: Tensor) -> Tensor:
    """DW (A + sqrt(gamma) I)^-1, for a block-diagonal inverse over the columns of dW."""
    parts = []
    for run, blocks_cbb in inverse:
        columns = grad_OI[:, run.start : run.stop].unflatten(1, (run.count, run.size))
        solved_cOb = torch.bmm(columns.transpose(0, 1), blocks_cbb)
        parts.append(solved_cOb.transpose(0, 1).flatten(1))
    return parts[0] if len(parts) == 1 else torch.cat(parts, dim=1)
