"""What is recorded, when, and at which positions."""

import copy
import gc
import weakref

import pytest
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

from geosd.optim.kfac import KFAC


def kfac_of(model, **changes):
    defaults = dict(blocks=2, subsample=1.0, storage=torch.float64)
    return KFAC(model, **(defaults | changes))


def close(first, second):
    """Whether two preconditioners have equal averages."""
    pairs = zip(
        first.factors.averages(first.decay), second.factors.averages(second.decay), strict=True
    )
    for (_, first_average), (_, second_average) in pairs:
        torch.testing.assert_close(first_average, second_average, rtol=1e-10, atol=1e-14)


class Scalar(nn.Module):
    """y = x at every position, with a loss whose delta is the coefficient c of the position."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(1, 1, bias=False, dtype=torch.float64)

    def forward(self, x, c):
        return (self.layer(x[..., None])[..., 0] * c).sum()


def drawn_moments(mask, subsample, seed=0, steps=1):
    """Mean of x^2 over the drawn positions, as A saw it and as G saw it, per step."""
    model = Scalar()
    kfac = KFAC(
        model,
        blocks=1,
        decay=0.0,
        subsample=subsample,
        storage=torch.float64,
        select=lambda name, module: True,
    )
    code = 3.0 ** torch.arange(mask.numel(), dtype=torch.float64).reshape(mask.shape) / 1e3
    moments = []
    for _ in range(steps):
        with kfac.observe(mask, seed=seed):
            model(code, code).backward()
        counts = dict(kfac.factors.counts)
        kfac.step()
        values = {
            o.item(): b.item()
            for own, s in kfac.factors.averages(0.0)
            for o, b in zip(own, s, strict=True)
        }
        moments.append((values[0], values[1], counts["layer.G"], counts["layer.A"]))
    return moments, code


def test_a_and_delta_are_drawn_at_the_same_positions_a_share_of_them():
    mask = torch.ones(4, 5, dtype=torch.bool)
    ((g, a, count_g, count_a),), code = drawn_moments(mask, 0.25)
    # Powers of three: a sum of their squares says which positions went in.
    assert g == a and count_g == count_a == 5
    everything = code.square().mean().item()
    ((g, a, *counts),), _ = drawn_moments(mask, 1.0)
    assert counts == [20, 20] and g == pytest.approx(everything) == pytest.approx(a)


def test_the_draw_is_named_by_seed_and_step():
    mask = torch.ones(4, 5, dtype=torch.bool)
    first, again, other = (drawn_moments(mask, 0.25, seed, 2)[0] for seed in (0, 0, 1))
    assert first == again
    assert first[0] != other[0] and first[0] != first[1]


def test_two_passes_inside_one_observation_draw_apart(dense):
    model = Scalar()
    kfac = KFAC(
        model, blocks=1, subsample=0.05, storage=torch.float64, select=lambda name, module: True
    )
    code = 3.0 ** torch.arange(20, dtype=torch.float64)
    with kfac.observe():
        for _ in range(2):
            model(code, code).backward()
    kfac.step()
    twice_one_position = code.square()
    assert kfac.factors.updates["layer.A"] == 1
    assert not torch.isclose(dense(kfac, "layer.A"), twice_one_position, rtol=1e-9).any()


def test_padding_is_never_drawn():
    mask = torch.tensor([[True] * 4 + [False] * 4])
    for seed in range(20):
        ((g, _, count, _),), code = drawn_moments(mask, 0.5, seed)
        assert count == 2 and g <= code[0, 2:4].square().mean().item() * (1 + 1e-12)
    ((g, _, count, _),), code = drawn_moments(mask, 1.0)
    assert count == 4 and g == pytest.approx(code[0, :4].square().mean().item())


def test_prompt_positions_masked_out_of_the_loss_count(make_decoder, batch, response_loss, dense):
    model, (ids, mask) = make_decoder(), batch
    kfac = kfac_of(model, blocks=1)
    layer, seen = model.model.layers[0].self_attn.v_proj, {}
    layer.register_forward_pre_hook(lambda m, args: seen.update(a=args[0].detach()))
    layer.register_full_backward_hook(lambda m, gi, go: seen.update(delta=go[0].detach()))
    with kfac.observe(mask, loss_terms=12):
        response_loss(model, ids, mask).backward()
    kfac.step()
    prompt = mask.clone()
    prompt[:, 3:] = False  # every loss term is predicted at position 3 or later
    assert seen["delta"][prompt].abs().amin() > 0
    a, delta = seen["a"][mask], 12 * seen["delta"][mask]
    name = "model.layers.0.self_attn"
    torch.testing.assert_close(dense(kfac, f"{name}.q_proj.A"), a.T @ a / mask.sum())
    torch.testing.assert_close(dense(kfac, f"{name}.v_proj.G"), delta.T @ delta / mask.sum())


@pytest.mark.parametrize("weights", ["number", "per sequence"])
def test_two_half_batches_make_the_factors_and_the_step_of_one_batch(
    weights, make_decoder, batch, response_loss
):
    ids, mask = batch
    results = []
    for rows in ([slice(0, 3)], [slice(0, 1), slice(1, 3)]):
        model = make_decoder()
        kfac = kfac_of(model)
        for at in rows:
            n = len(ids[at])
            terms = 12 if weights == "number" else torch.full((n,), 12.0)
            with kfac.observe(mask[at], loss_terms=terms):
                (response_loss(model, ids[at], mask[at]) * n / 3).backward()
        kfac.step()
        results.append((kfac, [p.grad for p in kfac.parameters()]))
    close(results[0][0], results[1][0])
    for whole_grad, halves_grad in zip(results[0][1], results[1][1], strict=True):
        torch.testing.assert_close(whole_grad, halves_grad, rtol=1e-8, atol=1e-10)


def test_passes_that_say_their_place_draw_together_what_one_pass_draws(make_decoder, batch):
    ids, mask = batch
    kept = []
    for rows in ([slice(0, 3)], [slice(0, 1), slice(1, 2), slice(2, 3)]):
        model = make_decoder()
        kfac = kfac_of(model, subsample=0.3)
        for at in rows:
            among = (int(mask[: at.start].sum()), int(mask.sum()))
            with kfac.observe(mask[at], seed=1, among=among):
                states = model.model(ids[at], mask[at].long()).last_hidden_state
                (states * mask[at][..., None]).square().sum().backward()
        assert set(kfac.factors.counts.values()) == {round(0.3 * int(mask.sum()))}
        kfac.step()
        kept.append(kfac)
    close(*kept)


def test_loss_terms_give_the_gradient_of_a_tokens_own_loss_whatever_the_batch(dense):
    """The mean over n equal terms has the G of one of them."""
    factors = []
    for n in (1, 50):
        model = Scalar()
        kfac = KFAC(model, blocks=1, subsample=1.0, select=lambda name, module: True)
        x, c = torch.ones(1, n).double(), torch.full((1, n), 2.0 / n).double()
        with kfac.observe(loss_terms=n):
            model(x, c).backward()
        kfac.step()
        factors.append(dense(kfac, "layer.G").item())
    assert factors == pytest.approx([4.0, 4.0])


def test_sequences_of_unequal_length_are_scaled_each_by_its_own_weight(dense):
    """A mean over B sequences of means over T_b tokens weighs a token by 1 / (B T_b)."""
    model = Scalar()
    kfac = KFAC(model, blocks=1, subsample=0.5, select=lambda name, module: True)
    mask = torch.tensor([[True] * 2 + [False] * 4, [True] * 6])
    weight = mask.double() / mask.sum(1, keepdim=True) / 2
    with kfac.observe(mask, loss_terms=2.0 * mask.sum(1)):
        model(torch.ones(2, 6).double(), 3 * weight).backward()
    kfac.step()
    assert dense(kfac, "layer.G").item() == pytest.approx(9.0)


@pytest.mark.parametrize("subsample", [1.0, 0.5])
@pytest.mark.parametrize("reentrant", [False, True])
def test_activation_checkpointing_counts_once(
    reentrant, subsample, make_decoder, batch, response_loss
):
    results = []
    for recompute in (False, True):
        model = make_decoder().train()
        if recompute:
            model.gradient_checkpointing_enable({"use_reentrant": reentrant})
            model.enable_input_require_grads()
        kfac = kfac_of(model, subsample=subsample)
        for step in range(2):
            model.zero_grad()
            with kfac.observe(batch[1], loss_terms=12, seed=step):
                response_loss(model, *batch).backward()
            expected = round(subsample * int(batch[1].sum()))
            assert set(kfac.factors.counts.values()) == {expected}
            kfac.step()
        results.append(kfac)
    close(*results)


def test_a_checkpointed_input_is_not_kept_alive():
    model = nn.Sequential(nn.Linear(3, 3), nn.Tanh(), nn.Linear(3, 3))
    kfac = KFAC(model, select=lambda name, module: True)
    inputs = []
    model[2].register_forward_pre_hook(lambda m, args: inputs.append(weakref.ref(args[0])))
    loss = checkpoint(model, torch.ones(5, 3, requires_grad=True), use_reentrant=False).sum()
    gc.collect()
    assert len(inputs) == 1 and inputs[0]() is None
    loss.backward()
    assert len(inputs) == 2  # it was recomputed, and recorded once:
    assert kfac.factors.counts["2.A"] == kfac.factors.counts["2.G"] == 1


def test_nothing_is_recorded_without_gradients_nor_by_a_copy(make_decoder, batch, response_loss):
    model = make_decoder()
    kfac = kfac_of(model)
    with torch.no_grad():
        response_loss(model, *batch)
    with torch.inference_mode():
        response_loss(model, *batch)
    response_loss(copy.deepcopy(model), *batch).backward()
    response_loss(model, *batch)  # a forward whose backward never comes
    assert set(kfac.factors.counts.values()) == {0}


def test_without_observe_every_position_of_a_training_pass_is_drawn_from(
    make_decoder, batch, response_loss
):
    unobserved_model, observed_model = make_decoder(), make_decoder()
    unobserved = kfac_of(unobserved_model, subsample=0.25)
    observed = kfac_of(observed_model, subsample=0.25)
    for _ in range(2):
        response_loss(unobserved_model, *batch).backward()
        with observed.observe(torch.ones_like(batch[1])):
            response_loss(observed_model, *batch).backward()
        assert set(unobserved.factors.counts.values()) == {6}
        unobserved.step()
        observed.step()
    close(unobserved, observed)


def test_hooks_change_no_gradient(make_decoder, batch, response_loss):
    unhooked, hooked = make_decoder(), make_decoder()
    kfac_of(hooked)
    for model in (unhooked, hooked):
        response_loss(model, *batch).backward()
    pairs = zip(unhooked.parameters(), hooked.parameters(), strict=True)
    assert all(
        torch.equal(parameter.grad, hooked_parameter.grad) for parameter, hooked_parameter in pairs
    )


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("shape", [(6, 3), (2, 3, 3)])
def test_outputs_may_be_changed_in_place(shape, bias, dense):
    random = torch.Generator().manual_seed(0)
    x = torch.randn(shape, generator=random, dtype=torch.float64)
    layer = nn.Linear(3, 3, bias=bias, dtype=torch.float64)
    kfac = kfac_of(layer, blocks=1, select=lambda name, module: True)
    layer(x).mul_(2).square_().sum().backward()
    gradient, delta = layer.weight.grad.clone(), 8 * layer(x).detach().reshape(6, 3)
    layer.weight.grad = None
    (2 * nn.functional.linear(x, layer.weight, layer.bias)).square().sum().backward()
    torch.testing.assert_close(gradient, layer.weight.grad)
    kfac.step()
    torch.testing.assert_close(dense(kfac, ".G"), delta.T @ delta / 6)


def test_under_autocast_the_factors_are_float32():
    layer = nn.Linear(3, 3)
    kfac = KFAC(layer, subsample=1.0, select=lambda name, module: True)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        loss = layer(torch.full((4, 3), 1.001)).float().sum()
    loss.backward()
    kfac.step()
    assert kfac.spectrum()["a_mean"] == pytest.approx(1.001**2, rel=1e-6)
    assert layer.weight.grad.dtype == torch.float32


def test_a_mask_of_another_batch_is_refused(make_decoder, batch, response_loss):
    model = make_decoder()
    kfac = kfac_of(model)
    with pytest.raises(ValueError, match=r"called on \(3, 8\) positions, the mask has \(2, 8\)"):
        with kfac.observe(batch[1][:2]):
            response_loss(model, *batch)
    with pytest.raises(ValueError, match="loss_terms has shape"):
        with kfac.observe(batch[1], loss_terms=torch.ones(8)):
            pass


def checkpointed(model, reentrant):
    model.gradient_checkpointing_enable({"use_reentrant": reentrant})
    return model.train()


@pytest.mark.parametrize("between", ["nothing", "a teacher's pass", "samples before"])
def test_reentrant_checkpoints_are_refused_where_the_backward_pass_is_outside(
    make_decoder, batch, response_loss, between
):
    ids, mask = batch
    model = checkpointed(make_decoder(), reentrant=True)
    kfac = kfac_of(model)
    if between == "samples before":
        with torch.no_grad():
            model(input_ids=ids)
    with kfac.observe(mask, loss_terms=12):
        loss = response_loss(model, ids, mask)
    if between == "a teacher's pass":
        with torch.no_grad():
            model(input_ids=ids)
    with pytest.raises(RuntimeError, match="(?s)outside of the observe.*Hint: call backward"):
        loss.backward()


def test_a_reentrant_checkpoint_of_another_pass_is_refused(make_decoder, batch, response_loss):
    ids, mask = batch
    model = checkpointed(make_decoder(), reentrant=True)
    kfac = kfac_of(model)
    with kfac.observe(mask, loss_terms=12):
        first = response_loss(model, ids, mask)
    with kfac.observe(mask, loss_terms=12):
        second = response_loss(model, ids, mask)
        with pytest.raises(RuntimeError, match="(?s)outside of the observe.*Hint: call backward"):
            (first + second).backward()


@pytest.mark.parametrize(
    ("reentrant", "inside", "observed"),
    [(True, True, True), (True, False, False), (False, False, True), (False, True, True)],
)
def test_checkpoints_with_the_right_observation_give_the_factors_of_none(
    make_decoder, batch, response_loss, reentrant, inside, observed
):
    ids, mask = batch
    preconditioners = []
    for model in (make_decoder(), checkpointed(make_decoder(), reentrant)):
        kfac = kfac_of(model)
        if observed:
            with kfac.observe(mask, loss_terms=12):
                loss = response_loss(model, ids, mask)
                if inside:
                    loss.backward()
        else:
            loss = response_loss(model, ids, mask)
        if not inside:
            loss.backward()
        kfac.step()
        preconditioners.append(kfac)
    close(*preconditioners)
