"""One token of every row through a transformers model, with a preallocated key-value cache.

B = rows, H = query heads, K = key-value heads, D = elements of a head, C = columns of the cache,
L = columns of it that are filled, V = vocabulary.

Rows are padded on the left, so all of them append in the same column. Keys and values lie in
tensors made before the first token, only their filled columns are read, and an attention function
of our own, registered with transformers, needs neither mask nor copies of keys for grouped queries.
The model itself is transformers' and unchanged.
"""

from collections.abc import Sequence
from typing import Any, Protocol

import torch
from torch import Tensor, nn
from torch.nn.functional import scaled_dot_product_attention
from transformers import AttentionInterface
from transformers.cache_utils import Cache

from geosd.sampling.decoding.kv_cache import CacheColumns, KeyValueCache, KeyValueLayer

ATTENTION = "geosd_decode"
"""Name of `decode_step_attention` among transformers' attention functions."""


HARMLESS = frozenset({"dropout", "position_ids", "use_cache"})
"""Arguments of an attention that change nothing while a model generates."""


class UnsupportedDecodeStepError(NotImplementedError):
    """The decode step cannot serve a model: its attention is more than a softmax over products."""


class DecodeStep(Protocol):
    """Computes the next token's logits of every row; `EagerStep`, or a compiled one.

    `record` is what a manifest says of it.
    """

    record: dict[str, Any]

    def __call__(self, ids_B: Tensor, cache: KeyValueCache) -> Tensor:
        """Append the tokens `ids_B` to the cache; logits [B, V] of the tokens that follow."""
        ...


def decode_step_attention(
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    *,
    columns: CacheColumns | None = None,
    scaling: float | None = None,
    sliding_window: int | None = None,
    **other: Any,
) -> tuple[Tensor, None]:
    """Attention of one query a row over the filled columns of a cache.

    It has the arguments of transformers' attention functions: `query` [B, H, 1, D], `key` and
    `value` the whole cache [B, K, C, D]. `columns` stands for the mask. Queries of one group are
    treated as several queries over the same keys, so that keys are not repeated. A sliding window
    is a later first column, because rows share their columns.

    Returns:
        [B, 1, H, D], and no attention weights.

    Raises:
        UnsupportedDecodeStepError: The model passes something that changes the result, or does not
            pass `columns` on. The sampler uses the model's own attention then.
    """
    changes = {name for name, given in other.items() if given is not None} - HARMLESS
    if changes or columns is None:
        raise UnsupportedDecodeStepError(f"{type(module).__name__}: {sorted(changes)}")
    B, H, _, D = query.shape
    filled, first, start = columns.filled, columns.first, 0
    if sliding_window and isinstance(filled, torch.SymInt):  # torch.export cuts at no window
        first = first.clamp(min=filled - sliding_window)
    elif sliding_window:
        start = max(0, filled - sliding_window)
    shown = None
    if columns.padded:
        shown = torch.arange(start, filled, device=query.device) >= first[:, None, None, None]
    grouped = query.view(B, key.shape[1], -1, D)
    result = scaled_dot_product_attention(
        grouped,
        key[:, :, start:filled],
        value[:, :, start:filled],
        attn_mask=shown,
        scale=scaling,
    )
    return result.reshape(B, 1, H, D), None


AttentionInterface.register(ATTENTION, decode_step_attention)


def next_logits(
    model: nn.Module, ids_B: Tensor, columns: CacheColumns, layers: Sequence[tuple[Tensor, Tensor]]
) -> Tensor:
    """Logits [B, V] after one more token a row; `layers` get its keys and values in place."""
    cache = Cache(layers=[KeyValueLayer(*pair, columns.filled) for pair in layers])
    # The whole model, not its inner one: a sharded model's forward begins at its root.
    return model(
        input_ids=ids_B[:, None],
        position_ids=(columns.filled - 1 - columns.first)[:, None],
        past_key_values=cache,
        use_cache=True,
        columns=columns,
        logits_to_keep=1,
    ).logits[:, -1]


class EagerStep:
    """A step by the model's own modules, in whatever type and on whatever device they are."""

    def __init__(self, model: nn.Module) -> None:
        """Step through `model`, as it is at each call."""
        self.model, self.record = model, {"kind": "eager"}

    def __call__(self, ids_B: Tensor, cache: KeyValueCache) -> Tensor:
        """See `DecodeStep`."""
        cache.append_column()
        columns = CacheColumns(cache.first, cache.filled, cache.padded)
        config = self.model.config
        before = config._attn_implementation
        config._attn_implementation = ATTENTION
        try:
            return next_logits(self.model, ids_B, columns, cache.layers)
        finally:
            config._attn_implementation = before
