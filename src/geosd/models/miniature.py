"""The dimensions of the miniature's models, in the terms of the paper's table."""

from __future__ import annotations

from geosd.models.published_architectures import Architecture
from geosd.models.tiny_architectures import MODELS, SIZES


def described(name: str, vocabulary: int) -> Architecture:
    """What `geosd.models.tiny_architectures.build` makes of a name.

    Args:
        name: One of `geosd.models.tiny_architectures.names()`.
        vocabulary: Number of tokens.
    """
    family, size = MODELS[name]
    shape = SIZES[size]
    return Architecture(
        label=name,
        family=family,
        layers=shape.layers,
        hidden=shape.hidden,
        ffn=shape.intermediate,
        heads=shape.heads,
        kv_heads=shape.key_value_heads,
        head=shape.hidden // shape.heads,
        vocabulary=vocabulary,
        tied=False,
    )
