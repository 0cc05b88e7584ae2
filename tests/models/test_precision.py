"""What `auto` stands for, and what a cast leaves alone."""

import pytest
import torch

from geosd.models.precision import bfloat16_is_faster, cast_parameters, resolve_precision
from geosd.models.tiny_models import build_tiny_model

CPU = torch.device("cpu")


@pytest.mark.parametrize(
    ("processor", "expected"),
    [
        ({"cpu_name": "AMD EPYC", "avx512_bf16": True, "amx_bf16": False}, "bfloat16"),
        ({"cpu_name": "Intel Xeon", "avx512_bf16": True, "amx_bf16": False}, "float32"),
        ({"cpu_name": "Intel Xeon", "avx512_bf16": True, "amx_bf16": True}, "bfloat16"),
        ({"cpu_name": "Intel Xeon", "avx512_bf16": False, "amx_bf16": False}, "float32"),
        ({}, "float32"),
    ],
)
def test_auto_is_bfloat16_where_the_processor_multiplies_it_faster(
    monkeypatch, processor, expected
):
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: processor)
    assert resolve_precision("auto", CPU) == expected
    assert resolve_precision("float32", CPU) == "float32"
    assert resolve_precision("bfloat16", CPU) == "bfloat16"


def test_the_capabilities_that_are_read_exist_on_x86():
    capabilities = torch.cpu.get_capabilities()
    if capabilities["architecture"] != "x86_64":
        pytest.skip("only x86 names these instructions")
    assert {"avx512_bf16", "amx_bf16", "cpu_name"} <= capabilities.keys()
    amd = not capabilities["cpu_name"].startswith("Intel")
    expected = capabilities["amx_bf16"] or (capabilities["avx512_bf16"] and amd)
    assert bfloat16_is_faster(CPU) == expected


def test_a_cast_rounds_weights_and_leaves_rotary_frequencies_and_ties():
    model = build_tiny_model("mini-qwen3-xs", 32, 0, 1, seed=0)
    weights = {name: p.detach().clone() for name, p in model.named_parameters()}
    buffers = {name: b.clone() for name, b in model.named_buffers()}
    tied = model.lm_head.weight is model.model.embed_tokens.weight
    cast_parameters(model, torch.bfloat16)
    for name, parameter in model.named_parameters():
        assert torch.equal(parameter, weights[name].bfloat16()), name
    assert buffers and all(torch.equal(buffers[n], b) for n, b in model.named_buffers())
    assert (model.lm_head.weight is model.model.embed_tokens.weight) == tied
