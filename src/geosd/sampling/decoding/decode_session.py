"""A batch of responses in progress: logits of each row's next token, and rows that leave.

B = rows, P = longest prompt of the batch, V = vocabulary.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from transformers import DynamicCache
from transformers.cache_utils import DynamicLayer, DynamicSlidingWindowLayer

from geosd.models.forward import common_forward_prefix, prefix_worth_forward
from geosd.sampling.decoding.decode_step import DecodeStep, EagerStep, UnsupportedDecodeStepError
from geosd.sampling.decoding.kv_cache import (
    KeyValueCache,
    grown_cache,
    kv_cache_layers,
    kv_cache_with_room,
    moved_cache_rows,
)

LEAST_PREFIX = 32  # tokens: a second call has costs of its own, and a short one saves nothing


class PreallocatedSession:
    """Prompts and tokens in a preallocated cache.

    Args:
        model: A causal language model.
        step: Computes one token of every row.
        prompts: Token ids of each row, not empty.
        pad_id: Fills the left of short prompts.
        new_tokens: Most tokens that each row will append.

    Attributes:
        logits: Of each row's next token [B, V].
    """

    def __init__(
        self,
        model: nn.Module,
        step: DecodeStep,
        prompts: Sequence[Sequence[int]],
        pad_id: int,
        new_tokens: int,
    ) -> None:
        """Run the prompts through the model."""
        self._step = step
        self.logits, self.cache = prefill(model, prompts, pad_id, new_tokens)

    def state(self) -> tuple[dict[str, Any], dict[str, Tensor]]:
        """Plain values and tensors from which `resumed` goes on with the same bits."""
        values = {name: getattr(self.cache, name) for name in ("padded", "filled", "limit")}
        tensors = {"logits": self.logits, "first": self.cache.first}
        for number, (keys, given) in enumerate(self.cache.layers):
            tensors |= {f"keys.{number}": keys, f"values.{number}": given}
        return values, tensors

    @classmethod
    def resumed(
        cls, step: DecodeStep, values: Mapping[str, Any], tensors: Mapping[str, Tensor]
    ) -> "PreallocatedSession":
        """The session that `state` was of, computed on by `step`, on a CPU."""
        session = cls.__new__(cls)
        numbers = range(sum(name.startswith("keys.") for name in tensors))
        layers = [(tensors[f"keys.{n}"], tensors[f"values.{n}"]) for n in numbers]
        session._step, session.logits = step, tensors["logits"]
        session.cache = KeyValueCache(layers, tensors["first"], **values)
        return session

    def step(self, ids_B: Tensor) -> None:
        """Append one token to each row."""
        self.logits = self._step(ids_B, self.cache)

    def keep(self, rows: Tensor) -> None:
        """Drop all rows but `rows`."""
        self.logits = self.logits[rows]
        self.cache.keep(rows)


def prefill(
    model: nn.Module, prompts: Sequence[Sequence[int]], pad_id: int, new_tokens: int
) -> tuple[Tensor, KeyValueCache]:
    """Run the prompts through the model; each distinct prompt once, however often it stands there.

    Returns:
        Logits [B, V] of the first new token, and a cache with room for those that follow.
    """
    place_of: dict[tuple[int, ...], int] = {}
    places = [place_of.setdefault(tuple(prompt), len(place_of)) for prompt in prompts]
    distinct, device = list(place_of), next(model.parameters()).device
    prefix = _shared_prefix(model, distinct)
    ids_BR, first_B = _left_padded([prompt[prefix:] for prompt in distinct], pad_id, device)
    padded, width = len(set(map(len, distinct))) > 1, prefix + ids_BR.shape[1]
    columns_P = torch.arange(width, device=device)
    kept = DynamicCache()  # without the configuration no layer forgets what has left its window
    if prefix:
        ids_1S = torch.tensor([distinct[0][:prefix]], device=device)
        model(input_ids=ids_1S, past_key_values=kept, use_cache=True, logits_to_keep=1)
        kept.batch_repeat_interleave(len(distinct))
    # A short prompt has its padding between the prefix and its own tokens.
    own_BP = columns_P >= prefix + first_B[:, None]
    position_BP = columns_P - first_B[:, None]
    logits_BV = model(
        input_ids=ids_BR,
        attention_mask=(own_BP | (columns_P < prefix)).long() if padded else None,
        position_ids=position_BP[:, prefix:].clamp(min=0),
        past_key_values=kept,
        use_cache=True,
        logits_to_keep=1,
    ).logits[:, -1]
    source_BP = None
    if prefix and padded:  # from here on the padding comes first
        source_BP = torch.where(own_BP, columns_P, position_BP.clamp(min=0))
    rows = None
    if len(place_of) < len(prompts):
        rows = torch.tensor(places, device=device)
        logits_BV, first_B = logits_BV[rows], first_B[rows]
    limit = width + new_tokens
    columns, kind = min(limit, grown_cache(width)), device.type
    # Under autocast the attention would cast all that is kept at every token.
    cast = torch.get_autocast_dtype(kind) if torch.is_autocast_enabled(kind) else None
    layers = [
        tuple(
            kv_cache_with_room(
                moved_cache_rows(part.to(cast or part.dtype), source_BP), rows, width, columns
            )
            for part in (layer.keys, layer.values)
        )
        for layer in kept.layers
    ]
    return logits_BV, KeyValueCache(layers, first_B, padded, width, limit)


def _shared_prefix(model: nn.Module, prompts: Sequence[Sequence[int]]) -> int:
    """How many first tokens prompts share that are worth a pass of their own, as few-shot examples.

    None before a layer with a sliding window, which counts the padding between prefix and rest.
    """
    prefix = common_forward_prefix(prompts)
    if prefix < LEAST_PREFIX or not prefix_worth_forward(
        len(prompts), max(map(len, prompts)), prefix
    ):
        return 0
    windows = any(isinstance(each, DynamicSlidingWindowLayer) for each in kv_cache_layers(model))
    return 0 if windows else prefix


def _left_padded(
    prompts: Sequence[Sequence[int]], pad_id: int, device: torch.device
) -> tuple[Tensor, Tensor]:
    """Prompts as one tensor [B, P], padded on the left, and the column where each begins [B]."""
    width = max(map(len, prompts))
    padded = [[pad_id] * (width - len(prompt)) + list(prompt) for prompt in prompts]
    begins = [width - len(prompt) for prompt in prompts]
    return torch.tensor(padded, device=device), torch.tensor(begins, device=device)


class ModelCacheSession:
    """Prompts and tokens in the cache and by the attention that a model brings itself.

    For models whose attention is more than a softmax over scaled products, or whose layers keep
    more than keys and values. It has the methods and `logits` of `PreallocatedSession`. Prompts of
    several lengths need float32 or less, the precisions of rollouts: of a float64 model an eager
    attention with its softmax in float32, as Gemma 2's from transformers 5.24 on, has NaN there.
    """

    def __init__(self, model: nn.Module, prompts: Sequence[Sequence[int]], pad_id: int) -> None:
        """Run the prompts through the model."""
        self.model, self.cache = model, DynamicCache(config=model.config)
        ids_BP, begins_B = _left_padded(prompts, pad_id, next(model.parameters()).device)
        columns_P = torch.arange(ids_BP.shape[1], device=ids_BP.device)
        self.mask = (columns_P >= begins_B[:, None]).long()
        self._run(ids_BP)

    def step(self, ids_B: Tensor) -> None:
        """Append one token to each row."""
        self.mask = torch.cat([self.mask, torch.ones_like(self.mask[:, :1])], 1)
        self._run(ids_B[:, None])

    def keep(self, rows: Tensor) -> None:
        """Drop all rows but `rows`."""
        self.logits, self.mask = self.logits[rows], self.mask[rows]
        self.cache.reorder_cache(rows)

    def _run(self, ids_BT: Tensor) -> None:
        positions_BT = (self.mask.cumsum(1) - 1).clamp(min=0)[:, -ids_BT.shape[1] :]
        self.logits = self.model(
            input_ids=ids_BT,
            attention_mask=self.mask,
            position_ids=positions_BT,
            past_key_values=self.cache,
            use_cache=True,
            logits_to_keep=1,
        ).logits[:, -1]


def takes_preallocated_session(model: nn.Module) -> bool:
    """Whether a `PreallocatedSession` can decode a model; one decodes a token, to find out."""
    if not getattr(model, "_supports_attention_backend", False) or not hasattr(model, "model"):
        return False
    if any(
        type(layer) not in (DynamicLayer, DynamicSlidingWindowLayer)
        for layer in kv_cache_layers(model)
    ):
        return False
    try:
        session = PreallocatedSession(model, EagerStep(model), [[0]], pad_id=0, new_tokens=1)
        session.step(session.logits.argmax(-1))
    except UnsupportedDecodeStepError:
        return False
    return True
