"""One token of every row through a transformers model, with a preallocated key-value cache.

B = rows, H = query heads, K = key-value heads, D = elements of a head, C = columns of the cache,
L = columns of it that are filled, V = vocabulary.

Rows are padded on the left, so all of them append in the same column. Keys and values lie in
tensors made before the first token, only their filled columns are read, and an attention function
of our own, registered with transformers, needs neither mask nor copies of keys for grouped queries.
The model itself is transformers' and unchanged.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol

import torch
from torch import Tensor, nn
from torch.nn.functional import scaled_dot_product_attention
from transformers import AttentionInterface
from transformers.cache_utils import Cache

from geosd.sampling.key_value_cache import KeyValueCache, PreallocatedLayer

ATTENTION = "geosd_decode"
"""Name of `attend` among transformers' attention functions."""

HARMLESS = frozenset({"dropout", "position_ids", "use_cache"})
"""Arguments of an attention that change nothing while a model generates."""

LIBRARY = torch.library.Library("geosd", "DEF")
LIBRARY.define(
    "decode_attention(Tensor queries, Tensor keys, Tensor values, Tensor first, Tensor(a!) result,"
    " SymInt filled, int window, float scale) -> ()"
)
torch.library.register_fake("geosd::decode_attention", lambda *arguments: None, lib=LIBRARY)


class UnsupportedAttentionError(NotImplementedError):
    """The decode step cannot serve a model: its attention is more than a softmax over products."""


class DecodeStep(Protocol):
    """Computes the next token's logits of every row; `EagerStep`, or a compiled one."""

    def __call__(self, ids_B: Tensor, cache: KeyValueCache) -> Tensor:
        """Append the tokens `ids_B` to the cache; logits [B, V] of the tokens that follow."""
        ...


@dataclass(frozen=True)
class Columns:
    """Which columns of the cache the rows of a step may read.

    Attributes:
        first: Of each row [B].
        filled: L; the step's own token is in column L - 1.
        padded: Whether some row begins later than column 0.
        kernel: Whether the compiled attention reads them, or torch's.
    """

    first: Tensor
    filled: int
    padded: bool = True
    kernel: bool = False


def attend(
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    *,
    columns: Columns | None = None,
    scaling: float | None = None,
    sliding_window: int | None = None,
    **other: Any,
) -> tuple[Tensor, None]:
    """Attention of one query a row over the filled columns of a cache.

    Queries of one group are treated as several queries over the same keys, so that keys are not
    repeated. A sliding window is a later first column, because rows share their columns.

    Args:
        module: The model's attention.
        query: [B, H, 1, D].
        key: The whole cache [B, K, C, D].
        value: The whole cache [B, K, C, D].
        attention_mask: None; `columns` stands for it.
        columns: Which columns hold tokens; None if the model does not pass it on.
        scaling: Factor of the products; None is D ** -0.5.
        sliding_window: Tokens that a query sees, its own included; None sees all.
        other: What else a model passes.

    Returns:
        [B, 1, H, D], and no attention weights.

    Raises:
        UnsupportedAttentionError: The model passes something that changes the result.
    """
    if changes := {name for name, given in other.items() if given is not None} - HARMLESS:
        raise UnsupportedAttentionError(
            f"{type(module).__name__} passes {', '.join(sorted(changes))} to its attention, which"
            " this one does not apply.\nHint: the sampler uses the model's own attention then."
        )
    if columns is None:
        raise UnsupportedAttentionError(
            f"{type(module).__name__} does not get the columns to read.\nHint: the sampler uses the"
            " model's own attention then."
        )
    B, H, _, D = query.shape
    scale = D**-0.5 if scaling is None else scaling
    filled, first, window = columns.filled, columns.first, sliding_window or 0
    if columns.kernel:
        result = torch.empty_like(query[:, :, 0])
        torch.ops.geosd.decode_attention(
            query[:, :, 0].contiguous(), key, value, first, result, filled, window, scale
        )
        return result[:, None], None
    start = max(0, filled - window) if window else 0
    shown = None
    if columns.padded:
        shown = torch.arange(start, filled, device=query.device) >= first[:, None, None, None]
    grouped = query.view(B, key.shape[1], -1, D)
    result = scaled_dot_product_attention(
        grouped,
        key[:, :, start:filled],
        value[:, :, start:filled],
        attn_mask=shown,
        scale=scale,
    )
    return result.reshape(B, 1, H, D), None


AttentionInterface.register(ATTENTION, attend)


def next_logits(
    model: nn.Module, ids_B: Tensor, columns: Columns, layers: Sequence[tuple[Tensor, Tensor]]
) -> Tensor:
    """Logits [B, V] after one more token a row; `layers` get its keys and values in place."""
    cache = Cache(layers=[PreallocatedLayer(*pair, columns.filled) for pair in layers])
    # The whole model, not its inner one: a sharded model's forward begins at its root.
    return model(
        input_ids=ids_B[:, None],
        position_ids=(columns.filled - 1 - columns.first)[:, None],
        past_key_values=cache,
        use_cache=True,
        columns=columns,
        logits_to_keep=1,
    ).logits[:, -1]


@contextmanager
def attention_function(model: nn.Module, name: str) -> Iterator[None]:
    """Let a model use another of transformers' attention functions for a while."""
    config = model.config
    before = config._attn_implementation
    config._attn_implementation = name
    try:
        yield
    finally:
        config._attn_implementation = before


class EagerStep:
    """A step by the model's own modules, in whatever type and on whatever device they are."""

    def __init__(self, model: nn.Module) -> None:
        """Step through `model`, as it is at each call."""
        self.model = model

    def __call__(self, ids_B: Tensor, cache: KeyValueCache) -> Tensor:
        """See `DecodeStep`."""
        cache.append_column()
        with attention_function(self.model, ATTENTION):
            columns = Columns(cache.first, cache.filled, cache.padded)
            return next_logits(self.model, ids_B, columns, cache.layers)
