"""Tensors that ranks hold in shards (DTensor), and the full tensors behind them."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, TypeGuard

import torch
import torch.distributed as dist
from torch import Tensor

if TYPE_CHECKING:
    from torch.distributed.tensor import DTensor


def is_dtensor(value: Any) -> TypeGuard[DTensor]:
    """Whether a value is a DTensor; none is where nothing has loaded their module, a slow one."""
    module = sys.modules.get("torch.distributed.tensor")
    return module is not None and isinstance(value, module.DTensor)


def full_tensor(tensor: Tensor) -> Tensor:
    """A tensor itself, or the full tensor where each rank has a shard."""
    return tensor.full_tensor() if is_dtensor(tensor) else tensor


class DTensorSquaredNorm:
    """The squared norm of several tensors together; ranks may hold them in shards.

    Adding a tensor waits for nothing: its part stays on its device until `read_dtensor_norms`.
    """

    def __init__(self) -> None:
        self.whole: list[Tensor] = []
        self.sharded: list[Tensor] = []
        self.group: dist.ProcessGroup | None = None

    def add(self, tensor: Tensor, factor: float = 1.0) -> None:
        """Add the squared norm of a tensor, times a factor."""
        self.add_square(local_shard(tensor).norm().square() * factor, tensor)

    def add_square(self, square: Tensor, of: Tensor) -> None:
        """Add a squared norm that is known already, of this rank's shard where `of` is sharded."""
        if is_dtensor(of):
            self.group = of.device_mesh.get_group()
            self.sharded.append(square)
        else:
            self.whole.append(square)


def local_shard(tensor: Tensor) -> Tensor:
    """A tensor itself, or this rank's shard of it."""
    return tensor.to_local() if is_dtensor(tensor) else tensor


def read_dtensor_norms(*norms: DTensorSquaredNorm) -> list[float]:
    """The values of several squared norms, in float64.

    The device is waited for once. Where there are shards, every rank calls this at the same time,
    for one all-reduce; without it, each tensor would need one of its own.
    """
    parts = [part for norm in norms for part in (*norm.whole, *norm.sharded)]
    if not parts:
        return [0.0] * len(norms)
    device = parts[0].device
    totals = torch.stack([_sum(norm.whole, device) for norm in norms])
    group = next((norm.group for norm in norms if norm.group is not None), None)
    if group is not None:
        shared = torch.stack([_sum(norm.sharded, device) for norm in norms])
        dist.all_reduce(shared, group=group)
        totals = totals + shared
    return totals.tolist()


def _sum(scalars: list[Tensor], device: torch.device) -> Tensor:
    """Sum of scalars [] in float64; 0 where there is none."""
    if not scalars:
        return torch.zeros((), dtype=torch.float64, device=device)
    return torch.stack([each.to(device, torch.float64) for each in scalars]).sum()


def copy_full_into(value: Tensor, into: Tensor) -> None:
    """Copy a full tensor into another, or into its shards on every rank."""
    if is_dtensor(into):
        from torch.distributed.tensor import distribute_tensor

        value = value.to(into.device, into.dtype)
        value = distribute_tensor(value, into.device_mesh, into.placements, src_data_rank=None)
    into.copy_(value)
