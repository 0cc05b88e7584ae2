"""Small random models of several architectures, with preferences a random head would not have."""

import os

import pytest
import torch
from cases import decoder

WINDOW = 8  # tokens; far fewer than a test's sequences
COMMON = {
    "vocab_size": 61,
    "hidden_size": 48,
    "intermediate_size": 64,
    "num_attention_heads": 6,
    "head_dim": 8,
    "max_position_embeddings": 256,
    "eos_token_id": 1,
    "bos_token_id": None,
}
SLIDING = {"sliding_window": WINDOW, "layer_types": ["sliding_attention", "full_attention"]}
MODELS = {
    "qwen3": ("Qwen3", {}),
    "olmo3": ("Olmo3", SLIDING),
    "llama": ("Llama", {}),
    "smollm2": ("Llama", {"tie_word_embeddings": True}),
    # Two whose attention or inner model is not what the preallocated cache needs.
    "gemma2": ("Gemma2", SLIDING),
    "gpt2": ("GPT2", {}),
}


@pytest.fixture(scope="session")
def random_weights():
    """A model of `MODELS` by name, always the same weights."""
    return make


def make(name, dtype=torch.float32):
    """A model of `MODELS`, always the same weights."""
    family, others = MODELS[name]
    model = decoder(family, seed=11, **COMMON, **others).eval()
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
