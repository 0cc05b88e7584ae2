"""Dimensions against the released configurations, counts against the real classes."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
import torch

from geosd.models import tiny_models as architectures
from geosd.models.architectures import Architecture, architecture, published_architectures

KEYS = {
    "layers": "num_hidden_layers",
    "hidden": "hidden_size",
    "ffn": "intermediate_size",
    "heads": "num_attention_heads",
    "kv_heads": "num_key_value_heads",
    "head": "head_dim",
    "vocabulary": "vocab_size",
    "tied": "tie_word_embeddings",
}


def on_meta(shape: Architecture) -> torch.nn.Module:
    """The model of these dimensions, without memory for its weights."""
    make_config, make_model = architectures.FAMILIES[shape.family]
    sizes = {released_key: getattr(shape, field) for field, released_key in KEYS.items()}
    config = make_config(
        **sizes, attention_bias=False, pad_token_id=0, bos_token_id=None, eos_token_id=1
    )
    with torch.device("meta"):
        return make_model(config)


@pytest.mark.parametrize("name", published_architectures())
def test_dimensions_are_those_of_the_released_configuration(name, shared_data):
    shape = architecture(name)
    config = json.loads((shared_data / f"configs/{shape.label}.config.json").read_text())
    assert config["model_type"] == shape.family
    # A released file may leave the head's size out where it follows from the heads.
    config.setdefault("head_dim", config["hidden_size"] // config["num_attention_heads"])
    assert {field: config[released_key] for field, released_key in KEYS.items()} == {
        field: getattr(shape, field) for field in KEYS
    }
    assert shape.context == config["max_position_embeddings"]
    assert config["attention_bias"] is False


@pytest.mark.parametrize("name", published_architectures())
def test_the_parameter_count_is_the_real_models(name):
    shape = architecture(name)
    model = on_meta(shape)
    assert shape.parameters == sum(p.numel() for p in model.parameters())
    projections = sum(p.numel() for n, p in model.named_parameters() if "_proj" in n)
    norms = sum(p.numel() for n, p in model.named_parameters() if "norm" in n)
    assert (shape.projections, shape.norms) == (projections, norms)


@pytest.mark.parametrize("family", ["qwen3", "olmo3", "llama"])
@pytest.mark.parametrize("tied", [False, True])
def test_the_formula_holds_where_queries_are_wider_than_the_model(family, tied):
    shape = Architecture("odd", family, 3, 24, 40, 4, 2, 10, 17, tied)
    assert shape.queries != shape.hidden
    assert shape.parameters == sum(p.numel() for p in on_meta(shape).parameters())


def test_the_count_can_be_wrong():
    shape = architecture("qwen3-1.7b")
    assert replace(shape, tied=False).parameters - shape.parameters == 151936 * 2048
    assert replace(shape, family="llama").parameters < shape.parameters


def test_queries_differ_from_the_hidden_size_at_4b_and_32b_only():
    # The paper, "K-FAC memory": n_h h = d for "all models here except Qwen3-4B/32B".
    wider = [
        name for name, shape in published_architectures().items() if shape.queries != shape.hidden
    ]
    assert wider == ["qwen3-4b", "qwen3-32b"]


def test_an_unknown_model_is_named_with_those_allowed():
    with pytest.raises(ValueError, match="'qwen3-9b' is none .* allowed are qwen3-1.7b"):
        architecture("qwen3-9b")
