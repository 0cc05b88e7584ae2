import pytest
from torch import nn

from geosd.optim.layer_selection import is_projection, select_layers, shared_input_factors


def test_the_seven_projections_of_every_block_and_nothing_else(make_decoder):
    for family in ("Qwen3", "Llama", "Olmo3"):
        names = list(select_layers(make_decoder(family), is_projection))
        assert len(names) == 2 * 7
        assert not any("lm_head" in name or "embed" in name for name in names)


def test_of_an_adapted_projection_the_adapters_matrices_are_taken_and_no_others():
    block = "base_model.model.model.layers.0.self_attn.q_proj"
    taken = [f"{block}.lora_A.default", f"{block}.lora_B.default", "layers.0.mlp.up_proj"]
    left = [f"{block}.lora_dropout.default", "base_model.model.lm_head.lora_A.default"]
    assert all(is_projection(name, None) for name in taken)
    assert not any(is_projection(name, None) for name in [*left, f"{block}.base_layer"])


def test_any_linear_can_be_chosen_by_its_name():
    model = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2))
    assert list(select_layers(model, lambda name, module: name == "2")) == ["2"]


def test_frozen_layers_are_left_out():
    model = nn.Sequential(nn.Linear(3, 4), nn.Linear(4, 2)).requires_grad_(False)
    model[1].weight.requires_grad_(True)
    assert list(select_layers(model, lambda name, module: True)) == ["1"]


def test_an_empty_choice_says_what_there_is():
    with pytest.raises(ValueError, match=r"the model has \['0'\](.|\n)*Hint"):
        select_layers(nn.Sequential(nn.Linear(2, 2)), is_projection)


def test_a_shared_weight_is_refused():
    model = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2))
    model[1].weight = model[0].weight
    with pytest.raises(ValueError, match="0 and 1 share one weight"):
        select_layers(model, lambda name, module: True)


def test_projections_of_one_input_follow_the_first_of_their_block():
    names = [f"{layer}.{leaf}" for layer in (0, 1) for leaf in ("q_proj", "k_proj", "v_proj")]
    input_owners = shared_input_factors([*names, "0.o_proj", "1.up_proj", "v_proj", "k_proj"])
    assert [input_owners[name] for name in names] == ["0.q_proj"] * 3 + ["1.q_proj"] * 3
    assert all(input_owners[n] == n for n in ("0.o_proj", "1.up_proj", "v_proj", "k_proj"))
