"""A live model's weights, on their way to an engine that samples from a copy of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import torch
from torch import Tensor, nn

BACKEND = "geosd_files"
"""Name under which vLLM's registry has the file transfer of `vllm_worker`."""

NamedTensor = tuple[str, Tensor]
SHARD = 2**31  # bytes of one shard: what the way holds at once, not what arrives


@torch.no_grad()
def named_weights(model: nn.Module) -> Iterator[NamedTensor]:
    """Every parameter once, under the name that a checkpoint gives it.

    A sharded parameter is gathered when its turn comes, which is a collective: every process that
    holds a part of the model runs through this in step with the others, also those that throw away
    what they get.

    Args:
        model: A transformers model, whole or sharded. A tied head is its embedding: it comes once.
    """
    for name, parameter in model.named_parameters():
        gather = getattr(parameter, "full_tensor", None)
        yield name, (gather() if callable(gather) else parameter).detach()


def shards(weights: Iterable[NamedTensor], dtype: torch.dtype, size: int = SHARD) -> Iterator[dict]:
    """Weights as a checkpoint's files hold them, a few at a time.

    Args:
        weights: Names and whole tensors.
        dtype: What they are sent as: the engine's own type, so that no more is sent than is kept.
        size: Bytes after which a shard is handed on.

    Yields:
        Name -> tensor, in the host's memory.
    """
    shard: dict[str, Tensor] = {}
    nbytes = 0
    for name, value in weights:
        # A copy even where type and device agree: a shard must not change under its reader.
        shard[name] = value.to(device="cpu", dtype=dtype, copy=True).contiguous()
        nbytes += shard[name].nbytes
        if nbytes >= size:
            yield shard
            shard, nbytes = {}, 0
    if shard:
        yield shard
