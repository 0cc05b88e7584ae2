"""LoRA beside layers of any name; needs peft (`make test-core`)."""

import pytest
import torch
from transformers import Phi3Config, Phi3ForCausalLM

from geosd.models.adapters import add_adapter
from geosd.models.load_and_save import weights_as_saved

pytest.importorskip("peft", reason="peft is not installed; `make .venv/installed-lora` installs it")


@pytest.fixture
def phi():
    torch.manual_seed(0)
    shape = Phi3Config(
        vocab_size=32,
        hidden_size=16,
        intermediate_size=24,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        pad_token_id=0,
        bos_token_id=1,
        eos_token_id=2,
    )
    return Phi3ForCausalLM(shape).eval()


def test_fused_projections_have_adapters_and_are_merged_into_their_weights(phi):
    ids = torch.arange(8)[None]
    before = phi(ids).logits
    add_adapter(phi, rank=2, alpha=4.0, targets=["qkv_proj", "gate_up_proj"], seed=0)
    assert torch.equal(phi(ids).logits, before)
    trained = {n.partition(".lora_")[0] for n, p in phi.named_parameters() if p.requires_grad}
    assert len(trained) == 2 * 2
    assert {name.rpartition(".")[2] for name in trained} == {"qkv_proj", "gate_up_proj"}
    generator = torch.Generator().manual_seed(0)
    for name, parameter in phi.named_parameters():
        if ".lora_B." in name:
            parameter.data = torch.randn(parameter.shape, generator=generator)
    moved = phi(ids).logits
    assert (moved - before).abs().max() > 1e-3
    merged = Phi3ForCausalLM(phi.config).eval()
    merged.load_state_dict(dict(weights_as_saved(phi)), strict=False)
    torch.testing.assert_close(merged(ids).logits, moved, rtol=1e-5, atol=1e-5)


def test_a_name_that_the_model_lacks_is_refused_with_those_that_it_has(phi):
    with pytest.raises(ValueError, match="(?s)q_proj: Phi3.*gate_up_proj.*qkv_proj.*Hint: "):
        add_adapter(phi, rank=2, alpha=4.0, targets=["q_proj", "o_proj"], seed=0)
    assert not any("lora_" in name for name, _ in phi.named_parameters())
