"""Dimensions and exact parameter counts: of the paper's seven models, and of the miniature's."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Literal

import yaml

Family = Literal["qwen3", "olmo3", "llama"]
POSITIONS = 512  # tokens; a teacher's prompt and response together stay far below
# Every dimension is a multiple of 16, so that K-FAC's 16 blocks divide it.
# name -> (family, hidden, layers, heads, key and value heads, ffn). The ladder varies the size, the
# trio of mini-qwen3's size the architecture.
TINY_MODELS: dict[str, tuple[Family, int, int, int, int, int]] = {
    "mini-qwen3-xs": ("qwen3", 32, 2, 2, 1, 96),
    "mini-qwen3-s": ("qwen3", 48, 2, 3, 1, 128),
    "mini-qwen3": ("qwen3", 64, 2, 4, 2, 192),
    "mini-qwen3-l": ("qwen3", 96, 2, 6, 2, 256),
    "mini-qwen3-xl": ("qwen3", 128, 3, 8, 4, 384),
    "mini-olmo3": ("olmo3", 64, 2, 4, 2, 192),
    "mini-llama": ("llama", 64, 2, 4, 2, 192),
}


@dataclass(frozen=True)
class Architecture:
    """The dimensions of one decoder, as in the paper's table of seven models (Table archs).

    L `layers`; `hidden`, d; `ffn`, d_ff; `heads` of queries, `kv_heads` of keys and of values, each
    of h dimensions, `head`; V rows of the embedding, `vocabulary`, which is the output head too
    where it is `tied`. The `family` is a class of transformers, which says what norms there are;
    `context` is the most tokens of a sequence, None where that is given elsewhere.
    """

    label: str
    family: Family
    layers: int
    hidden: int
    ffn: int
    heads: int
    kv_heads: int
    head: int
    vocabulary: int
    tied: bool
    context: int | None = None

    @property
    def queries(self) -> int:
        """The architecture's d_q = n_h h, the width of all queries; it need not be d."""
        return self.heads * self.head

    @property
    def keys(self) -> int:
        """The architecture's d_kv = n_kv h, the width of all keys, and of all values."""
        return self.kv_heads * self.head

    @property
    def projections(self) -> int:
        """The architecture's projection weights: L (2 d d_q + 2 d d_kv + 3 d d_ff)."""
        d = self.hidden
        return self.layers * (2 * d * self.queries + 2 * d * self.keys + 3 * d * self.ffn)

    @property
    def norms(self) -> int:
        """The architecture's norm scales: two a block, the last one, and q/k norms.

        Qwen3 normalises each head with scales shared by all heads (2 h a block), Olmo 3 all queries
        and all keys at once (d_q + d_kv a block), Llama neither.
        """
        inside = {"qwen3": 2 * self.head, "olmo3": self.queries + self.keys, "llama": 0}
        return self.layers * (2 * self.hidden + inside[self.family]) + self.hidden

    @property
    def parameters(self) -> int:
        """The architecture's parameters N: embedding, untied output head, projections, norms."""
        tables = 1 if self.tied else 2
        return tables * self.vocabulary * self.hidden + self.projections + self.norms


@cache
def published_architectures() -> Mapping[str, Architecture]:
    """The architectures of the paper's seven models by our names, in the paper's order."""
    table = resources.files("geosd.models") / "published_architectures.yaml"
    entries = yaml.safe_load(table.read_text(encoding="utf-8"))
    return {name: Architecture(**entry) for name, entry in entries.items()}


def architecture(name: str) -> Architecture:
    """The architecture of one of the paper's seven models; ValueError for any other name."""
    known = published_architectures()
    if name not in known:
        raise ValueError(
            f"{name!r} is none of the paper's models; allowed are {', '.join(known)}.\nHint: models"
            " of the miniature are built by geosd.models.tiny_models."
        )
    return known[name]


def tiny_architecture(name: str, vocabulary: int) -> Architecture:
    """The architecture of a tiny model, as those of the paper's models; ValueError if unknown."""
    if name not in TINY_MODELS:
        raise ValueError(
            f"unknown model {name!r}; allowed are {', '.join(TINY_MODELS)}.\nHint: the studies of"
            " params.yaml name their models under `models`."
        )
    family, hidden, layers, heads, kv_heads, ffn = TINY_MODELS[name]
    return Architecture(
        label=name,
        family=family,
        layers=layers,
        hidden=hidden,
        ffn=ffn,
        heads=heads,
        kv_heads=kv_heads,
        head=hidden // heads,
        vocabulary=vocabulary,
        tied=False,
    )
