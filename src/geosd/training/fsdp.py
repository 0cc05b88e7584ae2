"""A model in shards (FSDP2): fp32 masters, bf16 compute, and the ways in and out.

Every rank that holds a shard calls these functions at the same time.

The blocks of the transformer are gathered one at a time. Embedding, last norm and output head form
the root, which is gathered for a whole pass (`with_root_gathered`): the head is applied to chunks
of positions, in the backward pass again, and must not travel for each of them.
"""

import copy
import dataclasses
import types
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.checkpoint.state_dict import (
    StateDictOptions,
    get_model_state_dict,
    set_model_state_dict,
)
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.fsdp import (
    FSDPModule,
    MixedPrecisionPolicy,
    fully_shard,
    register_fsdp_forward_method,
)

from geosd.models.adapters import MATRICES, has_adapters
from geosd.models.load_and_save import weights_as_saved

T = TypeVar("T")

FULL_STATE_DICT = StateDictOptions(full_state_dict=True, cpu_offload=True)
"""Sharded tensors are saved full, on the first rank's CPU, and loaded into shards of any number."""


def shard(
    model: nn.Module, group: dist.ProcessGroup, device: torch.device, compute: torch.dtype
) -> nn.Module:
    """Cut a transformers model's parameters over the ranks of a group, in place.

    Gradients are added up over the ranks in fp32, not averaged: each differentiates its part of one
    loss. Parameters are gathered as `compute`.
    """
    mesh = DeviceMesh.from_group(group, device.type)
    policy = MixedPrecisionPolicy(param_dtype=compute, reduce_dtype=torch.float32)
    for layer in model.model.layers:
        fully_shard(layer, mesh=mesh, mp_policy=policy)
    fully_shard(model, mesh=mesh, mp_policy=policy)
    for module in model.modules():
        if isinstance(module, FSDPModule):
            module.set_gradient_divide_factor(1.0)
            module.set_force_sum_reduction_for_comms(True)  # gloo knows no premultiplied sum
    model.run_with_root = types.MethodType(lambda self, work: work(self), model)
    register_fsdp_forward_method(model, "run_with_root")
    return model


def with_root_gathered(model: nn.Module, work: Callable[[nn.Module], T]) -> T:
    """The result of `work(model)`, which may be differentiated, with a sharded root gathered."""
    return model.run_with_root(work) if isinstance(model, FSDPModule) else work(model)


def reshard(model: nn.Module) -> None:
    """Free the gathered root of an FSDP2-sharded model, which an update makes outdated."""
    if isinstance(model, FSDPModule):
        model.reshard()


@contextmanager
def summon_full_params(model: nn.Module) -> Iterator[None]:
    """Gather an FSDP2-sharded model whole on every rank, so that one rank may sample from it."""
    parts = [part for part in model.modules() if isinstance(part, FSDPModule)]
    for part in parts:
        part.unshard()
        part.set_reshard_after_forward(False, recurse=False)
    try:
        yield
    finally:
        for part in parts:
            part.set_reshard_after_forward(part is not model, recurse=False)
            part.reshard()


@torch.no_grad()
def sharded_copy(model: nn.Module, dtype: torch.dtype, compute: torch.dtype) -> nn.Module:
    """A copy in shards of its own, stored as `dtype`, gathered as `compute`, never on one rank."""
    first = next(model.parameters())
    copied = _without_weights(model, dtype)
    shard(copied, first.device_mesh.get_group(), first.device, compute)
    copied.to_empty(device=first.device)
    for into, module in zip(copied.modules(), model.modules(), strict=True):
        for name, value in module.named_buffers(recurse=False):
            setattr(into, name, value.clone())  # rotary frequencies, which no file holds
    for into, value in zip(copied.parameters(), model.parameters(), strict=True):
        into.copy_(value)
    return copied


def _without_weights(model: nn.Module, dtype: torch.dtype) -> nn.Module:
    """A model like a sharded one, on the meta device."""
    # The class that `fully_shard` has put its own in front of.
    model_class = next(cls for cls in type(model).__mro__ if not issubclass(cls, FSDPModule))
    with torch.device("meta"):
        return model_class._from_config(copy.deepcopy(model.config), dtype=dtype)


def full_state_dict(model: nn.Module) -> dict[str, torch.Tensor]:
    """A model's `state_dict`, or its adapters' where these alone train.

    Of a sharded model it is full on the first rank's CPU, and empty elsewhere.
    """
    weights = get_model_state_dict(model, options=FULL_STATE_DICT)
    return {name: value for name, value in weights.items() if MATRICES in name} or weights


def load_full_state_dict(model: nn.Module, weights: dict[str, torch.Tensor]) -> None:
    """Load the result of `full_state_dict`, on every rank, into a model sharded or not."""
    options = dataclasses.replace(FULL_STATE_DICT, strict=not has_adapters(model))
    # A copy of the dict, because torch puts shards into it.
    set_model_state_dict(model, dict(weights), options=options)


def full_model(model: nn.Module) -> nn.Module | None:
    """An unsharded model to write: itself, or the first rank's full CPU copy of a sharded one.

    Adapters are merged, in a copy that shares all other weights.
    """
    sharded = isinstance(model, FSDPModule)
    if not sharded and not has_adapters(model):
        return model
    weights = full_state_dict(model) if sharded else dict(weights_as_saved(model))
    if not weights:
        return None
    full = _without_weights(model, torch.float32)
    full.load_state_dict(weights, assign=True, strict=sharded)  # merged ones lack tied heads
    full.generation_config = model.generation_config
    full.tie_weights()
    return full.eval()
