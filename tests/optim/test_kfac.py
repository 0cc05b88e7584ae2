"""The preconditioner against explicit Kronecker algebra, in float64.

Row-major vec of dW [O, I]: the Fisher block of W is G (x) A in this order of the axes.
"""

import math

import numpy as np
import pytest
import torch
from torch import nn

from geosd.optim.kfac import KFAC


def every(name, module):
    return True


def exact(model, **changes):
    """K-FAC without subsampling, dense, in float64."""
    defaults = dict(blocks=1, subsample=1.0, storage=torch.float64, select=every)
    return KFAC(model, **(defaults | changes))


def randn(*shape, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, dtype=torch.float64, generator=generator)


def linear(inputs, outputs, bias=False):
    layer = nn.Linear(inputs, outputs, bias=bias, dtype=torch.float64)
    with torch.no_grad():
        layer.weight.copy_(randn(outputs, inputs, seed=7))
    return layer


def test_for_one_sample_the_product_is_its_exact_empirical_fisher(dense):
    layer = linear(4, 3)
    kfac = exact(layer)
    torch.logsumexp(layer(randn(1, 4)), -1).sum().backward()
    gradient = layer.weight.grad.flatten().numpy().copy()
    kfac.step()
    fisher = np.kron(dense(kfac, ".G"), dense(kfac, ".A"))
    np.testing.assert_allclose(fisher, np.outer(gradient, gradient), rtol=1e-12, atol=1e-14)


def test_for_a_deep_linear_net_with_independent_deltas_both_blocks_are_the_exact_fisher(dense):
    """Losses c_j . W2 W1 x_i over all pairs (i, j): every delta is independent of every input."""
    net = nn.Sequential(linear(4, 3), linear(3, 2))
    x, c = randn(5, 4, seed=1), randn(6, 2, seed=2)
    fisher = [0.0, 0.0]
    for i in range(5):
        for j in range(6):
            net.zero_grad()
            (net(x[i : i + 1]) * c[j]).sum().backward()
            for number in (0, 1):
                g = net[number].weight.grad.flatten().numpy()
                fisher[number] = fisher[number] + np.outer(g, g) / 30
    kfac = exact(net)
    pairs_x, pairs_c = x.repeat_interleave(6, 0), c.repeat(5, 1)
    net.zero_grad()
    with kfac.observe(loss_terms=30):
        (net(pairs_x) * pairs_c).sum(-1).mean().backward()
    kfac.step()
    for number in (0, 1):
        block = np.kron(dense(kfac, f"{number}.G"), dense(kfac, f"{number}.A"))
        np.testing.assert_allclose(block, fisher[number], rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("damping", [1e-3, 0.5])
def test_the_step_solves_the_damped_kronecker_system(damping):
    layer = linear(5, 3)
    kfac = exact(layer, damping=damping)
    x = randn(20, 5, seed=3)
    with kfac.observe(loss_terms=20):
        layer(x).square().sum(-1).mean().backward()
    gradient = layer.weight.grad.flatten().numpy().copy()
    x, delta = x.numpy(), (2 * layer(x)).detach().numpy()
    shift = math.sqrt(damping)
    system = np.kron(delta.T @ delta / 20 + shift * np.eye(3), x.T @ x / 20 + shift * np.eye(5))
    kfac.step()
    expected = np.linalg.solve(system, gradient).reshape(3, 5)
    np.testing.assert_allclose(layer.weight.grad, expected, rtol=1e-9)


def test_without_per_token_gradients_enter_g_as_they_are_backpropagated(dense):
    layer = linear(5, 3)
    kfac = exact(layer, per_token=False)
    x = randn(20, 5, seed=3)
    with kfac.observe(loss_terms=20):
        layer(x).square().sum(-1).mean().backward()
    kfac.step()
    delta = (2 * layer(x)).detach().numpy() / 20
    np.testing.assert_allclose(dense(kfac, ".G"), delta.T @ delta / 20, rtol=1e-9)


def test_a_bias_has_the_input_one():
    layer = linear(4, 3, bias=True)
    kfac = exact(layer, damping=0.04)
    x = randn(6, 4)
    with kfac.observe(loss_terms=6):
        layer(x).square().sum(-1).mean().backward()
    delta, gradient = (2 * layer(x)).detach().numpy(), layer.bias.grad.numpy().copy()
    kfac.step()
    system = np.kron(delta.T @ delta / 6 + 0.2 * np.eye(3), np.eye(1) + 0.2 * np.eye(1))
    np.testing.assert_allclose(layer.bias.grad, np.linalg.solve(system, gradient), rtol=1e-9)


def test_heavy_damping_leaves_the_gradient_divided_by_gamma():
    layer = linear(4, 3, bias=True)
    kfac = exact(layer, damping=1e14)
    layer(randn(6, 4)).square().mean().backward()
    weight, bias = layer.weight.grad.clone(), layer.bias.grad.clone()
    kfac.step()
    torch.testing.assert_close(layer.weight.grad * 1e14, weight, rtol=1e-5, atol=0)
    torch.testing.assert_close(layer.bias.grad * 1e14, bias, rtol=1e-5, atol=0)


def naive(steps, blocks, decay, damping):
    """The formula as it is written, for one layer: (inputs, deltas, gradient) per step."""

    def cut(matrix):
        size = len(matrix) // blocks
        mask = np.kron(np.eye(blocks), np.ones((size, size)))
        return matrix * mask

    a = g = 0.0
    results = []
    for t, (x, delta, gradient) in enumerate(steps, start=1):
        a = decay * a + (1 - decay) * cut(sum(np.outer(v, v) for v in x) / len(x))
        g = decay * g + (1 - decay) * cut(sum(np.outer(v, v) for v in delta) / len(delta))
        left = np.linalg.inv(g / (1 - decay**t) + math.sqrt(damping) * np.eye(len(g)))
        right = np.linalg.inv(a / (1 - decay**t) + math.sqrt(damping) * np.eye(len(a)))
        results.append(left @ gradient @ right)
    return results


@pytest.mark.parametrize("blocks", [1, 2])
def test_a_run_of_steps_follows_a_naive_loop_written_from_the_formula(blocks):
    layer = linear(6, 4)
    kfac = exact(layer, blocks=blocks, decay=0.8)
    steps, found = [], []
    for step in range(5):
        x = randn(7, 6, seed=step)
        layer.zero_grad()
        with kfac.observe(loss_terms=7):
            output = layer(x)
            output.sin().sum(-1).mean().backward()
        steps.append((x.numpy(), output.cos().detach().numpy(), layer.weight.grad.numpy().copy()))
        kfac.step()
        found.append(layer.weight.grad.numpy().copy())
    np.testing.assert_allclose(found, naive(steps, blocks, 0.8, 1e-3), rtol=1e-9)


@pytest.mark.parametrize("family", ["Qwen3", "Llama", "Olmo3"])
def test_a_decoders_gradients_change_in_the_projections_and_nowhere_else(
    family, make_decoder, batch, response_loss
):
    model = make_decoder(family)
    kfac = KFAC(model, blocks=3, storage=torch.float64)
    with kfac.observe(batch[1], loss_terms=12):
        response_loss(model, *batch).backward()
    before = {name: p.grad.clone() for name, p in model.named_parameters()}
    kfac.step()
    kfac_ids = {id(p) for p in kfac.parameters()}
    assert len(kfac_ids) == 14
    for name, parameter in model.named_parameters():
        assert torch.equal(parameter.grad, before[name]) == (id(parameter) not in kfac_ids), name


@pytest.mark.parametrize("family", ["Qwen3", "Llama", "Olmo3"])
def test_sharing_an_input_factor_changes_no_number(family, make_decoder, batch, response_loss):
    gradients = []
    for share in (True, False):
        model = make_decoder(family)
        kfac = KFAC(model, blocks=2, storage=torch.float64, share_inputs=share, subsample=0.5)
        for step in range(2):
            model.zero_grad()
            with kfac.observe(batch[1], loss_terms=12, seed=step):
                response_loss(model, *batch).backward()
            kfac.step()
        gradients.append([p.grad for p in kfac.parameters()])
    assert all(map(torch.equal, *gradients))


def test_layers_that_should_share_an_input_and_do_not_are_refused():
    class Cross(nn.Module):
        def __init__(self):
            super().__init__()
            self.q_proj, self.k_proj = nn.Linear(2, 2), nn.Linear(2, 2)

        def forward(self, x, memory):
            return self.q_proj(x) + self.k_proj(memory)

    model = Cross()
    KFAC(model)
    with pytest.raises(ValueError, match="share_inputs=False"):
        model(torch.ones(3, 2), torch.ones(3, 2))


def test_inverses_are_kept_between_inversions():
    layers = [linear(3, 3) for _ in range(2)]
    kfacs = [exact(layer, inverse_every=every) for layer, every in zip(layers, (1, 2), strict=True)]
    equal = []
    for step in range(3):
        for layer, kfac in zip(layers, kfacs, strict=True):
            layer.zero_grad()
            layer(randn(4, 3, seed=step)).sin().sum().backward()
            kfac.step()
        equal.append(torch.equal(layers[0].weight.grad, layers[1].weight.grad))
    assert equal == [True, False, True]


def test_spectrum_reads_the_eigenvalues_of_the_averages(dense):
    net = nn.Sequential(linear(4, 3), linear(3, 2))
    kfac = exact(net)
    net(randn(9, 4)).square().sum().backward()
    kfac.step()
    seen = kfac.spectrum()
    for side in ("A", "G"):
        values = [np.linalg.eigvalsh(dense(kfac, f"{number}.{side}")) for number in (0, 1)]
        mean = np.concatenate(values).mean()
        assert seen[f"{side.lower()}_mean"] == pytest.approx(mean, rel=1e-9)
        assert seen[f"{side.lower()}_max"] == pytest.approx(np.concatenate(values).max(), rel=0.03)
    assert seen["sqrt_damping"] == pytest.approx(math.sqrt(1e-3))


def test_bfloat16_storage_stays_near_float32(make_decoder, batch, response_loss):
    gradients = []
    for storage in ("float32", "bfloat16"):
        model = make_decoder().float()
        kfac = KFAC(model, blocks=2, storage=storage, subsample=1.0, damping=1e-2)
        for _ in range(4):
            model.zero_grad()
            with kfac.observe(batch[1], loss_terms=12):
                response_loss(model, *batch).backward()
            kfac.step()
        gradients.append(torch.cat([p.grad.flatten() for p in kfac.parameters()]))
    assert not torch.equal(*gradients)
    assert (gradients[0] - gradients[1]).norm() < 0.02 * gradients[0].norm()


def test_a_gradient_that_was_never_recorded_is_an_error_not_a_silent_step():
    layer = linear(3, 2)
    loss = layer(randn(4, 3)).sum()
    kfac = exact(layer)
    loss.backward()
    with pytest.raises(RuntimeError, match="build KFAC before the forward"):
        kfac.step()


@pytest.mark.parametrize(
    "wrong",
    [{"blocks": 0}, {"decay": 1.0}, {"damping": 0.0}, {"subsample": 0.0}, {"storage": "int8"}],
)
def test_settings_outside_their_range_are_named(wrong):
    with pytest.raises(ValueError, match=f"K-FAC's {next(iter(wrong))} is(.|\n)*Hint"):
        exact(linear(2, 2), **wrong)


def test_closing_takes_the_hooks_off():
    layer = linear(2, 2)
    kfac = exact(layer)
    kfac.close()
    layer(randn(3, 2)).sum().backward()
    assert kfac.factors.counts == {".G": 0, ".A": 0}
