"""Tiny models of three architectures, built with random weights: the models of the miniature."""

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

from geosd.models.architectures import POSITIONS, Architecture, tiny_architecture

FAMILIES = {
    "qwen3": (Qwen3Config, Qwen3ForCausalLM),
    "olmo3": (Olmo3Config, Olmo3ForCausalLM),
    "llama": (LlamaConfig, LlamaForCausalLM),
}


def build_tiny_model(
    name: str, vocabulary: int, pad_id: int, end_id: int, seed: int
) -> PreTrainedModel:
    """Build a tiny model of the miniature with random weights, in fp32; ValueError if unknown."""
    tokens = {"pad_token_id": pad_id, "eos_token_id": end_id, "bos_token_id": None}
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return random_model(tiny_architecture(name, vocabulary), POSITIONS, **tokens).float()


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
