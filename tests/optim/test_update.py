"""Rules, their states and the size of their steps."""

import io

import pytest
import torch
from torch import nn

from geosd.optim.kfac import KFAC
from geosd.optim.update import UpdateRule

SETTINGS = dict(blocks=3, subsample=0.5)
RULES = [("adamw", "adamw"), ("kfac", "adamw"), ("kfac", "plain"), ("muon", "adamw")]


@pytest.fixture
def advance(batch, response_loss):
    """Take steps of a run, each at its own learning rate, on one batch."""

    def steps(model, update, first, last):
        for step in range(first, last):
            update.zero_grad()
            with update.observe(batch[1], loss_terms=12, seed=step):
                response_loss(model, *batch).backward()
            update.step(1e-3 * (step + 1))

    return steps


def model_and_update(make_decoder, rule, inner, **changes):
    model = make_decoder().float()
    kfac = SETTINGS | changes.pop("kfac", {})
    return model, UpdateRule(model, rule=rule, inner=inner, kfac=kfac, **changes)


@pytest.mark.parametrize("fused", [True, False])
def test_the_adamw_rule_is_torchs_adamw(fused, make_decoder, batch, response_loss, advance):
    model, update = model_and_update(make_decoder, "adamw", "adamw", weight_decay=0.1)
    torch_model = make_decoder().float()
    adam = torch.optim.AdamW(
        torch_model.parameters(), betas=(0.9, 0.95), weight_decay=0.1, fused=fused
    )
    advance(model, update, 0, 4)
    for step in range(4):
        adam.zero_grad()
        adam.param_groups[0]["lr"] = 1e-3 * (step + 1)
        response_loss(torch_model, *batch).backward()
        adam.step()
    if fused:
        assert all(map(torch.equal, model.parameters(), torch_model.parameters()))
    for parameter, expected in zip(model.parameters(), torch_model.parameters(), strict=True):
        torch.testing.assert_close(parameter, expected, rtol=1e-5, atol=1e-7)


def test_inner_adamw_is_adamw_on_preconditioned_gradients(
    make_decoder, batch, response_loss, advance
):
    model, update = model_and_update(make_decoder, "kfac", "adamw")
    torch_model = make_decoder().float()
    kfac = KFAC(torch_model, **SETTINGS)
    adam = torch.optim.AdamW(
        torch_model.parameters(), betas=(0.9, 0.95), weight_decay=0.0, fused=True
    )
    advance(model, update, 0, 3)
    for step in range(3):
        adam.zero_grad()
        adam.param_groups[0]["lr"] = 1e-3 * (step + 1)
        with kfac.observe(batch[1], loss_terms=12, seed=step):
            response_loss(torch_model, *batch).backward()
        kfac.step()
        adam.step()
    assert all(map(torch.equal, model.parameters(), torch_model.parameters()))


def test_inner_plain_moves_projections_by_the_formula_and_the_rest_by_adamw(
    make_decoder, batch, response_loss
):
    model, update = model_and_update(make_decoder, "kfac", "plain", weight_decay=0.1)
    with update.observe(batch[1], loss_terms=12):
        response_loss(model, *batch).backward()
    before = {name: p.detach().clone() for name, p in model.named_parameters()}
    raw = {name: p.grad.clone() for name, p in model.named_parameters()}
    update.step(0.01)
    for name, parameter in model.named_parameters():
        if name.rsplit(".", 2)[-2].endswith("proj"):
            expected = before[name] - 0.01 * (parameter.grad + 0.1 * before[name])
        else:  # AdamW's first step from zero moments is the sign of the gradient, but for epsilon
            sign = raw[name] / (raw[name].abs() + 1e-8)
            expected = before[name] * (1 - 0.01 * 0.1) - 0.01 * sign
        torch.testing.assert_close(parameter.detach(), expected, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("rule, inner", RULES)
def test_the_relative_step_is_what_the_weights_moved(rule, inner, make_decoder, advance):
    model, update = model_and_update(make_decoder, rule, inner)
    advance(model, update, 0, 3)
    before = torch.cat([p.detach().double().flatten() for p in model.parameters()])
    advance(model, update, 3, 4)
    after = torch.cat([p.detach().double().flatten() for p in model.parameters()])
    expected = ((after - before).norm() / after.norm()).item()
    assert update.relative_step() == pytest.approx(expected, rel=1e-3)
    update.zero_grad()
    assert update.relative_step() == pytest.approx(expected, rel=1e-3)


@pytest.mark.parametrize("rule, inner", RULES)
def test_weight_decay_is_not_part_of_the_relative_step(rule, inner, make_decoder, advance):
    """The first step decays the same weights, and its gradients know nothing of the decay."""
    sizes = []
    for weight_decay in (0.0, 10.0):
        changes = {"weight_decay": weight_decay}
        model, update = model_and_update(make_decoder, rule, inner, **changes)
        before = torch.cat([p.detach().double().flatten() for p in model.parameters()])
        advance(model, update, 0, 1)
        after = torch.cat([p.detach().double().flatten() for p in model.parameters()])
        sizes.append(update.relative_step() * after.norm().item())
    decayed = ((after - before).norm()).item()
    assert sizes[1] == pytest.approx(sizes[0], rel=1e-5) and decayed > 1.2 * sizes[0]


@pytest.mark.parametrize("rule, inner", RULES)
@pytest.mark.parametrize("storage", ["float32", "bfloat16"])
def test_a_run_continued_from_its_saved_state_is_the_run_bit_for_bit(
    rule, inner, storage, make_decoder, advance
):
    kfac = {"storage": storage, "inverse_every": 2}
    model, update = model_and_update(make_decoder, rule, inner, kfac=kfac)
    advance(model, update, 0, 3)
    kept = io.BytesIO()
    torch.save({"model": model.state_dict(), "update": update.state_dict()}, kept)
    advance(model, update, 3, 6)

    kept.seek(0)
    state = torch.load(kept, weights_only=True)
    again, resumed = model_and_update(make_decoder, rule, inner, kfac=kfac)
    again.load_state_dict(state["model"])
    resumed.load_state_dict(state["update"])
    advance(again, resumed, 3, 6)
    assert all(map(torch.equal, model.parameters(), again.parameters()))
    assert resumed.spectrum() == update.spectrum()


def test_a_state_saved_between_two_micro_batches_continues_bit_for_bit(
    make_decoder, batch, response_loss
):
    ids, mask = batch
    states = []
    for interrupted in (False, True):
        model, update = model_and_update(make_decoder, "kfac", "adamw")
        for at in (slice(0, 1), slice(1, 3)):
            with update.observe(mask[at], seed=at.start):
                response_loss(model, ids[at], mask[at]).backward()
            if interrupted and at.start == 0:
                state = update.state_dict()
                fresh, update = model_and_update(make_decoder, "kfac", "adamw")
                update.load_state_dict(state)
                for parameter, old in zip(fresh.parameters(), model.parameters(), strict=True):
                    parameter.grad = old.grad
                model = fresh
        update.step(1e-3)
        states.append(list(model.parameters()))
    assert all(map(torch.equal, *states))


def test_a_state_of_another_rule_is_refused(make_decoder):
    _, adamw = model_and_update(make_decoder, "adamw", "adamw")
    _, kfac = model_and_update(make_decoder, "kfac", "adamw")
    with pytest.raises(ValueError, match="lacks kfac"):
        kfac.load_state_dict(adamw.state_dict())
    with pytest.raises(ValueError, match="has kfac"):
        adamw.load_state_dict(kfac.state_dict())
    _, muon = model_and_update(make_decoder, "muon", "adamw")
    with pytest.raises(ValueError, match="lacks muon"):
        muon.load_state_dict(adamw.state_dict())
    with pytest.raises(ValueError, match="has muon"):
        adamw.load_state_dict(muon.state_dict())


def test_unknown_rules_and_settings_say_what_is_allowed():
    model = nn.Sequential(nn.Linear(2, 2))
    with pytest.raises(ValueError, match="rule is 'sgd'(.|\n)*adamw, kfac, muon"):
        UpdateRule(model, rule="sgd")
    with pytest.raises(ValueError, match="inner is 'adam'(.|\n)*adamw, plain"):
        UpdateRule(model, inner="adam")
    with pytest.raises(ValueError, match="blokcs(.|\n)*allowed are blocks, decay"):
        UpdateRule(model, rule="kfac", kfac={"blokcs": 2})


def test_all_selected_layers_may_be_all_there_is():
    model = nn.Linear(2, 2)
    update = UpdateRule(
        model, rule="kfac", inner="plain", kfac={"select": lambda name, module: True}
    )
    model(torch.eye(2)).square().sum().backward()
    update.step(0.1)
    assert update.relative_step() > 0
    update.zero_grad()
    assert model.weight.grad is None
