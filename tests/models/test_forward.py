import pytest
import torch
from transformers import (
    AutoModelForCausalLM,
    DogeConfig,
    OPTConfig,
    PhiConfig,
    StableLmConfig,
    Starcoder2Config,
)

from geosd.models.forward import (
    evaluation_mode,
    last_hidden_states,
    last_hidden_states_after,
    recompute_layers,
    recomputes,
)
from geosd.models.output_head import head_logits
from geosd.models.tiny_models import build_tiny_model

FAMILIES = ["mini-qwen3", "mini-olmo3", "mini-llama"]
LENGTHS = (3, 9, 6)
WIDTH = 12


def padded(side):
    """Three rows of tokens padded on one side, and the same rows alone."""
    draw = torch.Generator().manual_seed(0)
    rows = [torch.randint(3, 22, (length,), generator=draw) for length in LENGTHS]
    ids, mask = torch.zeros(3, WIDTH, dtype=torch.long), torch.zeros(3, WIDTH, dtype=torch.bool)
    for place, row in enumerate(rows):
        at = slice(0, len(row)) if side == "right" else slice(WIDTH - len(row), WIDTH)
        ids[place, at], mask[place, at] = row, True
    return rows, ids, mask


def lively(name):
    """A model whose attention is far from uniform, so that a wrong mask or position shows."""
    model = build_tiny_model(name, vocabulary=22, pad_id=0, end_id=1, seed=0).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.ndim == 2:
                parameter.mul_(8)
    return model


@pytest.mark.parametrize("name", FAMILIES)
@pytest.mark.parametrize("side", ["right", "left"])
@torch.no_grad()
def test_padding_on_either_side_changes_no_logit(name, side):
    model = lively(name)
    rows, ids, mask = padded(side)
    logits = head_logits(model, last_hidden_states(model, ids, mask)[mask])
    alone = torch.cat([model(input_ids=row[None]).logits[0] for row in rows])
    torch.testing.assert_close(logits, alone, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("name", FAMILIES)
@torch.no_grad()
def test_left_padding_without_the_mask_would_show(name):
    model = lively(name)
    _, ids, mask = padded("left")
    right = head_logits(model, last_hidden_states(model, ids, mask)[mask])
    wrong = head_logits(model, last_hidden_states(model, ids, torch.ones_like(mask))[mask])
    assert (right - wrong).abs().max() > 1e-2


@pytest.mark.parametrize("name", FAMILIES)
def test_gradients_reach_the_weights_through_both_halves(name):
    model = lively(name)
    _, ids, mask = padded("right")
    head_logits(model, last_hidden_states(model, ids, mask)[mask]).square().mean().backward()
    assert all(parameter.grad is not None for parameter in model.parameters())


def test_the_head_is_not_called_for_hidden_states(monkeypatch):
    model = build_tiny_model("mini-qwen3-xs", vocabulary=22, pad_id=0, end_id=1, seed=0)
    monkeypatch.setattr(model.lm_head, "forward", None)
    _, ids, mask = padded("right")
    assert last_hidden_states(model, ids, mask).shape == (3, WIDTH, 32)


@pytest.mark.parametrize("name", FAMILIES)
def test_padding_on_the_right_needs_no_mask(name):
    model = lively(name)
    _, ids, mask = padded("right")
    with torch.no_grad():
        masked = last_hidden_states(model, ids, mask)[mask]
        torch.testing.assert_close(last_hidden_states(model, ids)[mask], masked)


@pytest.mark.parametrize("name", FAMILIES)
def test_rows_with_a_common_prefix_get_the_same_states_and_gradients_when_it_is_run_once(name):
    model = lively(name).double()
    ids = torch.randint(3, 22, (5, 14), generator=torch.Generator().manual_seed(2))
    ids[:, :6] = ids[0, :6]
    grads = []
    for states in (last_hidden_states(model, ids)[:, 6:], last_hidden_states_after(model, ids, 6)):
        model.zero_grad()
        (states.sin() * torch.linspace(1, 2, 8)[:, None]).sum().backward()
        grads.append([states, *(p.grad for p in model.parameters() if p.grad is not None)])
    for whole, shared in zip(*grads, strict=True):  # norms are float32 inside
        assert (shared - whole).norm() < 1e-5 * whole.norm()


SIZES = {
    "vocab_size": 30,
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "max_position_embeddings": 64,
    "bos_token_id": 0,
    "eos_token_id": 1,
    "pad_token_id": 2,
}
GROUPED = SIZES | {"num_key_value_heads": 2, "intermediate_size": 64}
# Rates by the names that architectures give them: of modules, of functions, and of the layers' own.
DROPPING = {
    "phi": PhiConfig(**GROUPED, resid_pdrop=0.5, embd_pdrop=0.5, attention_dropout=0.5),
    "stablelm": StableLmConfig(**GROUPED, hidden_dropout=0.5, attention_dropout=0.5),
    "starcoder2": Starcoder2Config(**GROUPED, residual_dropout=0.5, embedding_dropout=0.5),
    "doge": DogeConfig(**GROUPED, num_experts=4, hidden_dropout=0.5),
    "opt": OPTConfig(
        **SIZES,
        ffn_dim=64,
        word_embed_proj_dim=32,
        dropout=0.5,
        attention_dropout=0.5,
        layerdrop=0.5,
    ),
}


def gradients(model, ids):
    """A model's logits, gradients of their squares by name, and the runs of its first layer."""
    calls = []
    # Not of the layer itself: newer transformers keep its hooks out of what is made again.
    part = next(m for n, m in model.named_modules() if n.endswith("layers.0.self_attn.q_proj"))
    handle = part.register_forward_pre_hook(lambda *_: calls.append(1))
    model.zero_grad()
    logits = model(input_ids=ids, use_cache=False).logits
    logits.square().mean().backward()
    handle.remove()
    return logits, {n: p.grad for n, p in model.named_parameters() if p.grad is not None}, calls


@pytest.mark.parametrize("name", DROPPING)
def test_recomputing_drops_nothing_whatever_the_rate_is_called(name):
    torch.manual_seed(0)
    config = DROPPING[name]
    model = AutoModelForCausalLM.from_config(config, attn_implementation="eager").eval()
    ids = torch.arange(3, 20)[None]
    expected, gradient, calls = gradients(model, ids)
    assert len(calls) == 1
    assert not torch.equal(gradients(model.train(), ids)[0], expected)  # or nothing is tried here
    recompute_layers(model)
    assert recomputes(model)
    logits, recomputed, calls = gradients(model, ids)
    assert len(calls) == 2
    assert torch.equal(logits, expected)
    assert recomputed.keys() == gradient.keys()
    for key, value in gradient.items():
        torch.testing.assert_close(recomputed[key], value)
    assert model.config is config


def test_a_look_in_evaluation_mode_leaves_each_module_in_its_own():
    model = build_tiny_model("mini-llama", vocabulary=22, pad_id=0, end_id=1, seed=0)
    recompute_layers(model)
    before = [module.training for module in model.modules()]
    with pytest.raises(RuntimeError, match="inside"), evaluation_mode(model):
        assert not any(module.training for module in model.modules())
        assert not recomputes(model)
        raise RuntimeError("inside")
    assert [module.training for module in model.modules()] == before
    assert any(before) and not all(before)
