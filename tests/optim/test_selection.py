import warnings

import pytest
import torch
from cases import EXPERTS, decoder
from torch import nn

from geosd.optim.kfac import KFAC
from geosd.optim.layer_selection import layer_is_in_block, layers_of_shared_input, select_layers


def test_the_seven_projections_of_every_block_and_nothing_else(make_decoder):
    for family in ("Qwen3", "Llama", "Olmo3"):
        names = list(select_layers(make_decoder(family), layer_is_in_block))
        assert len(names) == 2 * 7
        assert not any("lm_head" in name or "embed" in name for name in names)


def test_adapters_of_blocks_are_taken_and_experts_are_not():
    block = "base_model.model.model.layers.0.self_attn"
    taken = [f"{block}.q_proj.lora_A.default", f"{block}.qkv_proj.lora_B.default"]
    taken += ["layers.0.mlp.up_proj", "layers.0.mlp.gate", "0.dense", "q_proj"]
    left = ["base_model.model.lm_head.lora_A.default", "altup_projections.0", "project_in"]
    left += ["layers.0.mlp.experts.3.gate_proj", "layers.0.mlp.experts.lora_A.default"]
    assert all(layer_is_in_block(name, None) for name in taken)
    assert not any(layer_is_in_block(name, None) for name in left)


def test_any_linear_can_be_chosen_by_its_name():
    model = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2))
    assert list(select_layers(model, lambda name, module: name == "2")) == ["2"]


def test_frozen_layers_are_left_out():
    model = nn.Sequential(nn.Linear(3, 4), nn.Linear(4, 2)).requires_grad_(False)
    model[1].weight.requires_grad_(True)
    assert list(select_layers(model, lambda name, module: True)) == ["1"]


def test_an_empty_choice_says_what_there_is():
    with pytest.raises(ValueError, match=r"the model has \['0'\](.|\n)*Hint"):
        select_layers(nn.Sequential(nn.Linear(2, 2)), layer_is_in_block)


def test_a_shared_weight_is_refused():
    model = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2))
    model[1].weight = model[0].weight
    with pytest.raises(ValueError, match="0 and 1 share one weight"):
        select_layers(model, lambda name, module: True)


def test_projections_of_one_input_follow_the_first_of_their_block():
    names = [f"{layer}.{leaf}" for layer in (0, 1) for leaf in ("q_proj", "k_proj", "v_proj")]
    input_owners = layers_of_shared_input([*names, "0.o_proj", "1.up_proj", "v_proj", "k_proj"])
    assert [input_owners[name] for name in names] == ["0.q_proj"] * 3 + ["1.q_proj"] * 3
    assert all(input_owners[n] == n for n in ("0.o_proj", "1.up_proj", "v_proj", "k_proj"))


@pytest.mark.parametrize(
    ("family", "leaves"),
    [
        ("Phi3", {"qkv_proj", "o_proj", "gate_up_proj", "down_proj"}),
        ("GPTNeoX", {"query_key_value", "dense", "dense_h_to_4h", "dense_4h_to_h"}),
        ("Starcoder2", {"q_proj", "k_proj", "v_proj", "o_proj", "c_fc", "c_proj"}),
    ],
)
def test_fused_and_renamed_layers_of_the_blocks_are_taken_whole(family, leaves, batch):
    model, (ids, _) = decoder(family).double(), batch
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        kfac = KFAC(model, blocks=2, subsample=1.0, storage=torch.float64)
    assert {name.rpartition(".")[2] for name in kfac.layers} == leaves
    assert kfac.share == 1 and kfac.left_out == ()
    matrices = {n.removesuffix(".weight"): p for n, p in model.named_parameters() if p.dim() == 2}
    assert {n for n in matrices if ".layers." in n} == set(kfac.layers)
    model(input_ids=ids).logits.logsumexp(-1).mean().backward()
    before = {name: layer.weight.grad.clone() for name, layer in kfac.layers.items()}
    kfac.step()
    for name, layer in kfac.layers.items():
        assert not torch.allclose(layer.weight.grad, before[name], rtol=0.1), name


def test_a_model_with_experts_is_refused_with_their_names_and_a_lower_share_warns():
    model = decoder("Qwen3Moe", **EXPERTS).double()
    with pytest.raises(ValueError, match="(?s)mlp.experts.gate_up_proj.*Hint:.*least_share"):
        KFAC(model, blocks=2)
    attention = 2 * 16 * (16 + 8 + 8 + 16)
    experts = 2 * (4 * 3 * 16 * 8 + 4 * 16)  # their matrices, and the router's
    share = attention / (attention + experts)
    with pytest.warns(UserWarning, match=rf"(?s)takes {share:.1%}.*experts.down_proj.*Hint:"):
        kfac = KFAC(model, blocks=2, least_share=0.3)
    assert kfac.share == pytest.approx(share)
    parts = ("experts.gate_up_proj", "experts.down_proj", "gate")
    assert set(kfac.left_out) == {f"model.layers.*.mlp.{part}" for part in parts}
    with warnings.catch_warnings():  # who chooses the layers knows them
        warnings.simplefilter("error")
        KFAC(model, blocks=2, select=lambda name, module: name.endswith("q_proj"))
    model.requires_grad_(False)
    for layer in kfac.layers.values():
        layer.weight.requires_grad_(True)
    assert KFAC(model, blocks=2).share == 1  # of the weights that train


def test_a_single_expert_that_is_a_linear_layer_is_left_out_by_name():
    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.q_proj, self.experts = nn.Linear(4, 4), nn.ModuleList([nn.Linear(4, 4)] * 1)

    model = nn.ModuleDict({"layers": nn.ModuleList([Block(), Block()])})
    with pytest.warns(UserWarning, match=r"takes 50.0%.*layers.\*.experts.\*"):
        assert KFAC(model, blocks=2, least_share=0.5).left_out == ("layers.*.experts.*",)


def test_a_share_beyond_one_is_refused(make_decoder):
    with pytest.raises(ValueError, match="(?s)least_share is 1.5; it must be in .0, 1.*Hint:"):
        KFAC(make_decoder(), least_share=1.5)
