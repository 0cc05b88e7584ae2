"""Tiny models of three architectures, by name: the models of the miniature."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from transformers import (
    LlamaConfig,
    LlamaForCausalLM,
    Olmo3Config,
    Olmo3ForCausalLM,
    PreTrainedModel,
    Qwen3Config,
    Qwen3ForCausalLM,
)

from geosd.models.published_architectures import Architecture

FAMILIES = {
    "qwen3": (Qwen3Config, Qwen3ForCausalLM),
    "olmo3": (Olmo3Config, Olmo3ForCausalLM),
    "llama": (LlamaConfig, LlamaForCausalLM),
}
POSITIONS = 512  # tokens; the longest teacher prompt and response together stay far below


@dataclass(frozen=True)
class Shape:
    """The size of a model.

    Attributes:
        hidden: Width of the residual stream. Every dimension is a multiple of 16, so that K-FAC's
            16 blocks divide it.
        layers: Transformer blocks.
        heads: Query heads.
        key_value_heads: Key and value heads, each shared by a group of query heads.
        intermediate: Width inside the gated MLP.
    """

    hidden: int
    layers: int
    heads: int
    key_value_heads: int
    intermediate: int


SIZES = {
    "xs": Shape(32, 2, 2, 1, 96),
    "s": Shape(48, 2, 3, 1, 128),
    "m": Shape(64, 2, 4, 2, 192),
    "l": Shape(96, 2, 6, 2, 256),
    "xl": Shape(128, 3, 8, 4, 384),
}
# name -> (family, size). The ladder varies the size, the trio (sizes m) the architecture.
MODELS = {
    "mini-qwen3-xs": ("qwen3", "xs"),
    "mini-qwen3-s": ("qwen3", "s"),
    "mini-qwen3": ("qwen3", "m"),
    "mini-qwen3-l": ("qwen3", "l"),
    "mini-qwen3-xl": ("qwen3", "xl"),
    "mini-olmo3": ("olmo3", "m"),
    "mini-llama": ("llama", "m"),
}


def names() -> tuple[str, ...]:
    """The models that `build` knows."""
    return tuple(MODELS)


def dimensions(name: str, vocabulary: int) -> Architecture:
    """The dimensions of the model that `build` makes, in the terms of the paper's table.

    Args:
        name: One of `names()`.
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


def build(name: str, vocabulary: int, pad_id: int, end_id: int, seed: int) -> PreTrainedModel:
    """A model with random weights.

    Args:
        name: One of `names()`.
        vocabulary: Number of tokens.
        pad_id: Token that fills rows.
        end_id: Token that ends a response.
        seed: The same seed gives the same weights.

    Returns:
        The model in fp32, ready to train.

    Raises:
        ValueError: The name is unknown.
    """
    if name not in MODELS:
        raise ValueError(
            f"unknown model {name!r}; allowed are {', '.join(MODELS)}.\nHint: the studies of"
            " params.yaml name their models under `models`."
        )
    family, size = MODELS[name]
    make_config, make_model = FAMILIES[family]
    shape = SIZES[size]
    config = make_config(
        vocab_size=vocabulary,
        hidden_size=shape.hidden,
        num_hidden_layers=shape.layers,
        num_attention_heads=shape.heads,
        num_key_value_heads=shape.key_value_heads,
        head_dim=shape.hidden // shape.heads,
        intermediate_size=shape.intermediate,
        max_position_embeddings=POSITIONS,
        tie_word_embeddings=False,
        pad_token_id=pad_id,
        eos_token_id=end_id,
        bos_token_id=None,
        attention_bias=False,
        attention_dropout=0.0,
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = make_model(config)
    return model.float()
