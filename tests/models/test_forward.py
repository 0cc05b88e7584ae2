import pytest
import torch

from geosd.models.forward import last_hidden_states, last_hidden_states_after
from geosd.models.output_head import head_logits
from geosd.models.tiny_models import build

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
    model = build(name, vocabulary=22, pad_id=0, end_id=1, seed=0).eval()
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
    model = build("mini-qwen3-xs", vocabulary=22, pad_id=0, end_id=1, seed=0)
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
