"""K-FAC over several ranks: sums that are added up, gradients that lie in shards (FSDP2).

Every rank keeps all factors and makes the same inverses from the same sums.
"""

from __future__ import annotations

import torch
import torch.distributed as dist
from torch import Tensor
from torch.distributed.tensor import DTensor, distribute_tensor

from geosd.optim.blocks import BlockFactors


def whole(tensor: Tensor) -> Tensor:
    """A tensor itself, or the whole of which each rank holds a shard."""
    return tensor.full_tensor() if isinstance(tensor, DTensor) else tensor


def put(value: Tensor, into: Tensor) -> None:
    """Copy the whole `value` into a tensor, or into its shards on every rank."""
    if isinstance(into, DTensor):
        value = distribute_tensor(value.to(into.dtype), into.device_mesh, into.placements)
    into.copy_(value)


def sum_over_ranks(factors: BlockFactors, group: dist.ProcessGroup) -> None:
    """Add up this step's sums and counts of positions over the ranks, in place.

    The factors become means over the positions of all ranks: the same as on one rank that saw them
    all, where each rank scaled its output gradients by the terms of its own loss.
    """
    sums = factors.sums()
    counts = torch.tensor(list(factors.counts.values()), device=sums[0].device)
    for tensor in (*sums, counts):
        dist.all_reduce(tensor, group=group)
    factors.counts = dict(zip(factors.counts, counts.tolist(), strict=True))
