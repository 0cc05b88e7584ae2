"""Which updates bfloat16 loses, against the steps that AdamW really takes."""

import warnings

import pytest
import torch
from torch import nn

pytest.importorskip("accelerate")

from geosd.integrations.lost_updates import check_updates_move, share_of_updates_not_lost


def layer(dtype=torch.bfloat16, deviation=0.02):
    torch.manual_seed(0)
    model = nn.Linear(200, 100, bias=False)
    nn.init.normal_(model.weight, std=deviation)
    return model.to(dtype)


def moved_by_adamw(model, rate):
    """The share of weights that one step of AdamW at a rate moves."""
    before = model.weight.detach().clone()
    optimizer = torch.optim.AdamW(model.parameters(), lr=rate, weight_decay=0.0)
    model.weight.grad = torch.randn_like(model.weight)
    optimizer.step()
    return (model.weight != before).float().mean().item()


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("rate", [1e-6, 1e-5, 1e-4, 1e-3])
def test_the_share_is_what_a_step_of_adamw_moves(rate, dtype):
    model = layer(dtype)
    share = share_of_updates_not_lost(model.weight, rate)
    assert moved_by_adamw(model, rate) == pytest.approx(share, abs=0.05)
    assert share_of_updates_not_lost(layer(torch.float32).weight, rate) > 0.9


def test_lost_updates_are_refused_and_others_warned_of_with_the_share():
    model = layer()
    few, most = (share_of_updates_not_lost(model.weight, rate) for rate in (1e-6, 1e-3))
    assert few < 0.05 < 0.9 < most
    adamw = torch.optim.AdamW(model.parameters(), lr=1e-6)
    with pytest.raises(ValueError, match=rf"(?s)bfloat16.*move {few:.1%}.*Hint: .*float32"):
        check_updates_move(model, adamw)
    adamw = torch.optim.AdamW(model.parameters(), lr=1e-3)
    with pytest.warns(UserWarning, match=rf"(?s)bfloat16.*move {most:.1%}.*Hint: .*float32"):
        check_updates_move(model, adamw)
    adamw.param_groups[0] |= {"initial_lr": 1e-6, "lr": 0.0}  # as a warm-up begins
    with pytest.raises(ValueError, match="1.0e-06"):
        check_updates_move(model, adamw)

    class Masters(torch.optim.AdamW):
        """An optimiser that may keep float32 copies."""

    with pytest.warns(UserWarning, match="float32"):
        check_updates_move(model, Masters(model.parameters(), lr=1e-6))


def test_float32_frozen_weights_and_a_rate_of_zero_are_no_matter():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = nn.Sequential(layer().requires_grad_(False), layer(torch.float32))
        trained = [each for each in model.parameters() if each.requires_grad]
        check_updates_move(model, torch.optim.AdamW(trained, lr=1e-6))
        check_updates_move(layer(), None)
        model = layer()
        check_updates_move(model, torch.optim.AdamW(model.parameters(), lr=0.0))
