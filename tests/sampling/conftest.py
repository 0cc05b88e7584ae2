"""Small random models of several architectures, with preferences a random head would not have."""

import os

import pytest
import torch
from transformers import (
    Gemma2Config,
    Gemma2ForCausalLM,
    GPT2Config,
    GPT2LMHeadModel,
    LlamaConfig,
    LlamaForCausalLM,
    Olmo3Config,
    Olmo3ForCausalLM,
    Qwen3Config,
    Qwen3ForCausalLM,
)

WINDOW = 8  # tokens; far fewer than a test's sequences
COMMON = {
    "vocab_size": 61,
    "hidden_size": 48,
    "intermediate_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 6,
    "num_key_value_heads": 2,
    "head_dim": 8,
    "max_position_embeddings": 256,
    "pad_token_id": 0,
    "eos_token_id": 1,
    "bos_token_id": None,
}
SLIDING = {"sliding_window": WINDOW, "layer_types": ["sliding_attention", "full_attention"]}
MAKERS = {
    "qwen3": lambda: Qwen3ForCausalLM(Qwen3Config(**COMMON)),
    "olmo3": lambda: Olmo3ForCausalLM(Olmo3Config(**COMMON, **SLIDING)),
    "llama": lambda: LlamaForCausalLM(LlamaConfig(**COMMON)),
    "smollm2": lambda: LlamaForCausalLM(LlamaConfig(**COMMON, tie_word_embeddings=True)),
    # Two whose attention or inner model is not what the preallocated cache needs.
    "gemma2": lambda: Gemma2ForCausalLM(Gemma2Config(**COMMON, **SLIDING)),
    "gpt2": lambda: GPT2LMHeadModel(
        GPT2Config(vocab_size=61, n_embd=48, n_layer=2, n_head=6, n_positions=256)
    ),
}


@pytest.fixture(scope="session")
def random_weights():
    """A model of `MAKERS` by name, always the same weights."""
    return make


def make(name, dtype=torch.float32):
    """A model of `MAKERS`, always the same weights."""
    torch.manual_seed(11)
    model = MAKERS[name]().eval()
    with torch.no_grad():
        for layer_name, parameter in model.named_parameters():
            if parameter.dim() > 1 and "embed" not in layer_name and "wte" not in layer_name:
                parameter.mul_(8)
    return model.to(dtype)


@pytest.fixture
def compiled_steps(tmp_path_factory, monkeypatch):
    """Let steps be compiled, into a folder that all processes of a run of tests share.

    To compile one takes most of a minute.
    """
    base = tmp_path_factory.getbasetemp()
    of_run = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
    monkeypatch.setenv("GEOSD_CACHE", str(of_run / "compiled_steps"))
    monkeypatch.delenv("GEOSD_COMPILE", raising=False)
