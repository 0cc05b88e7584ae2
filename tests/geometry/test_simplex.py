import math

import numpy as np
import pytest
import scipy.stats
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from geosd import geometry as g
from geosd.geometry.simplex import floored, simplex_floor

DIVERGENCES = {
    "overlap": g.overlap,
    "hellinger": g.hellinger,
    "fisher_rao": g.fisher_rao,
    "fisher_rao_squared": g.fisher_rao_squared,
    "forward_kl": g.forward_kl,
    "reverse_kl": g.reverse_kl,
    "jsd": g.jsd,
    "skew": g.skew_kl,
    "alpha": lambda p, q: g.alpha_divergence(p, q, 0.3),
}


def test_entropy_agrees_with_scipy_and_counts_impossible_tokens_as_nothing():
    p = torch.tensor([[0.5, 0.25, 0.25, 0.0], [1.0, 0, 0, 0], [0.25] * 4], dtype=torch.float64)
    np.testing.assert_allclose(g.entropy(p.log()), scipy.stats.entropy(p.numpy(), axis=-1), 1e-14)


def test_the_floor_raises_values_and_lets_gradients_pass():
    log_p = torch.tensor([-math.inf, -200.0, -1.0], requires_grad=True)
    raised = floored(log_p)
    raised.sum().backward()
    floor = simplex_floor(torch.float32)
    assert floor == pytest.approx(-87.336544)
    torch.testing.assert_close(raised, torch.tensor([floor, floor, -1.0]))
    assert (log_p.grad == 1).all()


@pytest.mark.parametrize("name", DIVERGENCES)
@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10**6), st.floats(-50, 50), st.integers(2, 15))
def test_neither_token_order_nor_a_constant_in_the_logits_matters(name, seed, constant, tokens):
    generator = torch.Generator().manual_seed(seed)
    z_p, z_q = 3 * torch.randn(2, 4, tokens, dtype=torch.float64, generator=generator)
    order = torch.randperm(tokens, generator=generator)
    value = DIVERGENCES[name](z_p.log_softmax(-1), z_q.log_softmax(-1))
    moved = DIVERGENCES[name](
        (z_p + constant)[:, order].log_softmax(-1), z_q[:, order].log_softmax(-1)
    )
    torch.testing.assert_close(moved, value, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("name", DIVERGENCES)
def test_every_state_is_measured_alone(name):
    generator = torch.Generator().manual_seed(4)
    log_p, log_q = torch.randn(2, 3, 5, 8, dtype=torch.float64, generator=generator).log_softmax(-1)
    whole = DIVERGENCES[name](log_p, log_q)
    assert whole.shape == (3, 5)
    for i in range(3):
        torch.testing.assert_close(
            DIVERGENCES[name](log_p[i, 2], log_q[i, 2]), whole[i, 2], rtol=1e-13, atol=1e-15
        )


@pytest.mark.parametrize(
    "divergence",
    [g.forward_kl, g.reverse_kl, g.jsd, g.skew_kl, g.hellinger, g.fisher_rao_squared],
)
def test_rows_that_sum_to_one_need_no_second_normalisation(divergence):
    generator = torch.Generator().manual_seed(5)
    logits = torch.randn(2, 7, 30, dtype=torch.float64, generator=generator) * 3
    p, q = logits.requires_grad_().log_softmax(-1)
    results = [divergence(p, q, normalised=said) for said in (False, True)]
    gradients = [torch.autograd.grad(r.sum(), logits, retain_graph=True)[0] for r in results]
    torch.testing.assert_close(*results, rtol=1e-12, atol=1e-14)
    torch.testing.assert_close(*gradients, rtol=1e-11, atol=1e-14)
    assert not torch.equal(divergence(logits[0], logits[1], normalised=True), results[0])
