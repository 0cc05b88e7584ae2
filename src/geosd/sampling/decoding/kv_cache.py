"""Keys and values in buffers that are made once and grow by chunks."""

from dataclasses import dataclass
from typing import Any

from torch import Tensor, nn
from transformers import DynamicCache
from transformers.cache_utils import CacheLayerMixin

CHUNK = 256  # columns by which a cache grows, at least


@dataclass
class KeyValueCache:
    """Keys and values of all layers, for rows that are padded on the left.

    Attributes:
        layers: Keys and values [B, K, C, D] of each layer.
        first: Column of each row's first token [B].
        padded: Whether some row begins later than column 0.
        filled: L, columns that hold a token of some row.
        limit: Most columns that will be needed.
    """

    layers: list[tuple[Tensor, Tensor]]
    first: Tensor
    padded: bool
    filled: int
    limit: int

    @property
    def columns(self) -> int:
        """C, the columns that there is room for."""
        return self.layers[0][0].shape[2]

    def append_column(self) -> None:
        """Count one more column as filled, and make room where there is none."""
        self.filled += 1
        if self.filled > self.columns:
            self._copy(None, grown_cache(self.columns))

    def keep(self, rows: Tensor) -> None:
        """Drop all rows but `rows`, which may repeat."""
        self.first = self.first[rows]
        self._copy(rows, self.columns)

    def _copy(self, rows: Tensor | None, columns: int) -> None:
        columns = min(columns, self.limit)
        self.layers = [
            tuple(kv_cache_with_room(part, rows, self.filled, columns) for part in pair)
            for pair in self.layers
        ]


def grown_cache(columns: int) -> int:
    """Columns of a larger cache, so that all copies together cost a few of the last one."""
    return columns + max(CHUNK, columns // 2)


def kv_cache_with_room(source: Tensor, rows: Tensor | None, filled: int, columns: int) -> Tensor:
    """Some rows of keys or values [B, K, C, D], their first columns copied into `columns` ones."""
    filled = min(filled, source.shape[2])
    chosen = source[:, :, :filled] if rows is None else source[rows, :, :filled]
    room = chosen.new_empty(chosen.shape[0], chosen.shape[1], columns, chosen.shape[3])
    room[:, :, :filled] = chosen
    return room


class KeyValueLayer(CacheLayerMixin):
    """A layer's keys and values as transformers' models append to them: in place, and unsliced."""

    def __init__(self, keys: Tensor, values: Tensor, filled: int) -> None:
        """Wrap keys and values [B, K, C, D] whose last filled column is the step's own."""
        self.keys, self.values, self.filled = keys, values, filled
        self.is_initialized = True

    def update(
        self, key_states: Tensor, value_states: Tensor, *args: Any, **kwargs: Any
    ) -> tuple[Tensor, Tensor]:
        """Write the step's column and return the whole cache; `attend` reads its filled part."""
        self.keys[:, :, self.filled - 1 : self.filled].copy_(key_states)
        self.values[:, :, self.filled - 1 : self.filled].copy_(value_states)
        return self.keys, self.values

    def lazy_initialization(self, key_states: Tensor, value_states: Tensor) -> None:
        """Nothing: the tensors are there."""

    def get_mask_sizes(self, query_length: int) -> tuple[int, int]:
        """Columns and offset of a mask."""
        return self.filled, 0

    def get_seq_length(self) -> int:
        """Columns filled before the step."""
        return self.filled - 1

    def get_max_length(self) -> int:
        """No limit of its own."""
        return -1


def moved_cache_rows(part: Tensor, source_BP: Tensor | None) -> Tensor:
    """Keys or values [B, K, P, D] of each row's columns `source_BP`; None: as they are."""
    if source_BP is None:
        return part
    return part.gather(2, source_BP[:, None, :, None].expand_as(part))


def kv_cache_layers(model: nn.Module) -> list[CacheLayerMixin]:
    """The layers of keys and values in the cache that a model brings itself."""
    return DynamicCache(config=model.config).layers


@dataclass(frozen=True)
class CacheColumns:
    """Which columns of the cache the rows of a step may read.

    Attributes:
        first: Of each row [B].
        filled: L; the step's own token is in column L - 1.
        padded: Whether some row begins later than column 0.
    """

    first: Tensor
    filled: int
    padded: bool = True
