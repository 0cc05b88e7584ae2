"""Tensors that ranks hold in shards (DTensor), and the full tensors behind them."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, TypeGuard

from torch import Tensor

if TYPE_CHECKING:
    from torch.distributed.tensor import DTensor


def is_sharded(value: Any) -> TypeGuard[DTensor]:
    """Whether a value is a DTensor; none is where nothing has loaded their module, a slow one."""
    module = sys.modules.get("torch.distributed.tensor")
    return module is not None and isinstance(value, module.DTensor)


def full_tensor(tensor: Tensor) -> Tensor:
    """A tensor itself, or the full tensor where each rank has a shard."""
    return tensor.full_tensor() if is_sharded(tensor) else tensor


def copy_full_into(value: Tensor, into: Tensor) -> None:
    """Copy a full tensor into another, or into its shards on every rank."""
    if is_sharded(into):
        from torch.distributed.tensor import distribute_tensor

        value = value.to(into.device, into.dtype)
        value = distribute_tensor(value, into.device_mesh, into.placements, src_data_rank=None)
    into.copy_(value)
