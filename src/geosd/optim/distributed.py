"""K-FAC and AdamW over several ranks: sums that are added up, gradients that lie in shards (FSDP2).

FSDP2 gives each rank consecutive rows of a weight. Rows of one block of G meet only rows of the
same block, and A acts on columns, which every shard has whole: where no block is cut by the edge of
a shard, a rank preconditions its rows where they lie, with its own blocks of G and all blocks of A.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import torch
import torch.distributed as dist
from torch import Tensor

from geosd.optim.blocks import BlockFactors
from geosd.optim.damped_inverse import Inverse
from geosd.optim.dtensors import copy_full_into, full_tensor, is_dtensor
from geosd.optim.partition import splits_a_block


def sum_distributed(factors: BlockFactors, group: dist.ProcessGroup) -> None:
    """Add K-FAC's sums and counts up over the ranks, in place: the factors are means over all."""
    sums = factors.sums()
    counts = torch.tensor(list(factors.counts.values()), device=sums[0].device)
    for tensor in (*sums, counts):
        dist.all_reduce(tensor, group=group)
    factors.counts = dict(zip(factors.counts, counts.tolist(), strict=True))


def precondition_distributed(
    grad: Tensor, name: str, factors: BlockFactors, solve: Callable[[Inverse, Tensor], Tensor]
) -> None:
    """Precondition a gradient in place, full or in FSDP2 shards, by the function `solve`.

    `grad` is of a weight [O, I] or a bias [O], `name` that of its factor G; `solve` takes the
    inverse over rows and these rows of the gradient to rows of the same shape.
    """
    if not _has_own_rows(grad, name, factors):
        solved = solve(factors.full_inverse(name), full_tensor(grad).to(factors.compute))
        copy_full_into(solved, into=grad)
        return
    start, stop = factors.span(factors.dims[name])
    if start == stop:
        return
    rows = grad.to_local()
    inverse = [
        (replace(block_range, start=block_range.start - start), blocks)
        for block_range, blocks in factors.inverse(name)
    ]
    rows.copy_(solve(inverse, rows.to(factors.compute)))


def _has_own_rows(grad: Tensor, name: str, factors: BlockFactors) -> bool:
    """Whether this rank's rows of a gradient are just those of the blocks of G that it owns."""
    if not is_dtensor(grad) or factors.group is None:
        return False
    ranks = factors.group.size()
    by_rows = grad.device_mesh.size() == ranks and all(each.is_shard(0) for each in grad.placements)
    return by_rows and not splits_a_block(factors.dims[name], factors.blocks, ranks)
