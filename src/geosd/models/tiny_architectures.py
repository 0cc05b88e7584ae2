"""Tiny models of three architectures, by name: the models of the miniature."""

from typing import Any

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

from geosd.models.published_architectures import Architecture, Family

FAMILIES = {
    "qwen3": (Qwen3Config, Qwen3ForCausalLM),
    "olmo3": (Olmo3Config, Olmo3ForCausalLM),
    "llama": (LlamaConfig, LlamaForCausalLM),
}
POSITIONS: int = 512  # tokens; a teacher's prompt and response together stay far below


# Every dimension is a multiple of 16, so that K-FAC's 16 blocks divide it.
# name -> (family, hidden, layers, heads, key and value heads, ffn). The ladder varies the size, the
# trio of mini-qwen3's size the architecture.
MODELS: dict[str, tuple[Family, int, int, int, int, int]] = {
    "mini-qwen3-xs": ("qwen3", 32, 2, 2, 1, 96),
    "mini-qwen3-s": ("qwen3", 48, 2, 3, 1, 128),
    "mini-qwen3": ("qwen3", 64, 2, 4, 2, 192),
    "mini-qwen3-l": ("qwen3", 96, 2, 6, 2, 256),
    "mini-qwen3-xl": ("qwen3", 128, 3, 8, 4, 384),
    "mini-olmo3": ("olmo3", 64, 2, 4, 2, 192),
    "mini-llama": ("llama", 64, 2, 4, 2, 192),
}


def dimensions(name: str, vocabulary: int) -> Architecture:
    """The dimensions of a tiny model in the terms of the paper's table; ValueError if unknown."""
    if name not in MODELS:
        raise ValueError(
            f"unknown model {name!r}; allowed are {', '.join(MODELS)}.\nHint: the studies of"
            " params.yaml name their models under `models`."
        )
    family, hidden, layers, heads, kv_heads, ffn = MODELS[name]
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


def build(name: str, vocabulary: int, pad_id: int, end_id: int, seed: int) -> PreTrainedModel:
    """Build a tiny model of the miniature with random weights, in fp32; ValueError if unknown."""
    tokens = {"pad_token_id": pad_id, "eos_token_id": end_id, "bos_token_id": None}
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return random_model(dimensions(name, vocabulary), POSITIONS, **tokens).float()


def random_model(shape: Architecture, positions: int, **config: Any) -> PreTrainedModel:
    """Build a model of given dimensions, with weights of torch's generator; `config`: the rest."""
    make_config, make_model = FAMILIES[shape.family]
    return make_model(
        make_config(
            vocab_size=shape.vocabulary,
            hidden_size=shape.hidden,
            intermediate_size=shape.ffn,
            num_hidden_layers=shape.layers,
            num_attention_heads=shape.heads,
            num_key_value_heads=shape.kv_heads,
            head_dim=shape.head,
            max_position_embeddings=positions,
            tie_word_embeddings=shape.tied,
            attention_bias=False,
            attention_dropout=0.0,
            **config,
        )
    )
