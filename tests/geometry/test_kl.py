import math

import numpy as np
import pytest
import scipy.spatial.distance
import scipy.stats
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from geosd.geometry import forward_kl, jsd, reverse_kl, skew_kl


def distributions(seed=0, rows=20, tokens=11, scale=2.0):
    generator = torch.Generator().manual_seed(seed)
    z = scale * torch.randn(2, rows, tokens, dtype=torch.float64, generator=generator)
    log_p, log_q = z.log_softmax(-1)
    return log_p, log_q, log_p.exp().numpy(), log_q.exp().numpy()


def test_both_directions_agree_with_scipy():
    log_p, log_q, p, q = distributions()
    np.testing.assert_allclose(forward_kl(log_p, log_q), scipy.stats.entropy(q, p, axis=-1), 1e-12)
    np.testing.assert_allclose(reverse_kl(log_p, log_q), scipy.stats.entropy(p, q, axis=-1), 1e-12)


def test_jsd_agrees_with_scipy():
    log_p, log_q, p, q = distributions()
    expected = scipy.spatial.distance.jensenshannon(p, q, axis=-1) ** 2
    np.testing.assert_allclose(jsd(log_p, log_q), expected, 1e-10)


@pytest.mark.parametrize("beta", [0.1, 0.25, 0.75, 0.9])
def test_jsd_at_any_beta_is_the_mean_divergence_to_the_mixture(beta):
    log_p, log_q, p, q = distributions()
    m = beta * q + (1 - beta) * p
    expected = beta * scipy.stats.entropy(q, m, axis=-1)
    expected += (1 - beta) * scipy.stats.entropy(p, m, axis=-1)
    np.testing.assert_allclose(jsd(log_p, log_q, beta), expected, 1e-10)


@pytest.mark.parametrize("alpha", [0.01, 0.1, 0.5])
def test_skew_kl_agrees_with_scipy_in_both_directions(alpha):
    log_p, log_q, p, q = distributions()
    forward = scipy.stats.entropy(q, alpha * q + (1 - alpha) * p, axis=-1)
    reverse = scipy.stats.entropy(p, alpha * p + (1 - alpha) * q, axis=-1)
    np.testing.assert_allclose(skew_kl(log_p, log_q, alpha), forward, 1e-10)
    np.testing.assert_allclose(skew_kl(log_p, log_q, alpha, "reverse"), reverse, 1e-10)


def test_unskewed_is_plain_kl():
    log_p, log_q, *_ = distributions()
    assert torch.equal(skew_kl(log_p, log_q, 0.0), forward_kl(log_p, log_q))
    assert torch.equal(skew_kl(log_p, log_q, 0.0, "reverse"), reverse_kl(log_p, log_q))


def test_small_beta_scales_jsd_to_the_forward_direction_and_large_beta_to_the_reverse():
    log_p, log_q, p, q = distributions(scale=1.0)
    beta = 1e-6
    forward, reverse = scipy.stats.entropy(q, p, axis=-1), scipy.stats.entropy(p, q, axis=-1)
    np.testing.assert_allclose(jsd(log_p, log_q, beta) / beta, forward, 1e-3)
    np.testing.assert_allclose(jsd(log_p, log_q, 1 - beta) / beta, reverse, 1e-3)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from([0.01, 1.0, 20.0, 300.0]))
def test_bounds_and_symmetry(seed, scale):
    log_p, log_q, *_ = distributions(seed, rows=8, tokens=6, scale=scale)
    assert (forward_kl(log_p, log_q) >= -1e-14).all()
    torch.testing.assert_close(jsd(log_p, log_q), jsd(log_q, log_p), rtol=1e-12, atol=1e-15)
    assert (jsd(log_p, log_q) >= -1e-15).all()
    assert (jsd(log_p, log_q) <= math.log(2) + 1e-14).all()
    for direction in ("forward", "reverse"):
        assert (skew_kl(log_p, log_q, 0.1, direction) <= -math.log(0.1) + 1e-13).all()


def test_disjoint_supports_reach_the_bounds():
    log_p, log_q = torch.tensor([[1.0, 0.0], [0.0, 1.0]], dtype=torch.float64).log()
    assert jsd(log_p, log_q).item() == pytest.approx(math.log(2))
    assert skew_kl(log_p, log_q, 0.1).item() == pytest.approx(-math.log(0.1))
    assert forward_kl(log_p, log_q).item() == pytest.approx(-math.log(np.finfo(np.float64).tiny))


@pytest.mark.parametrize("beta", [0.0, 1.0, -0.5, math.nan])
def test_jsd_refuses_a_beta_at_which_it_vanishes(beta):
    log_p, log_q, *_ = distributions()
    with pytest.raises(ValueError, match="strictly between 0 and 1"):
        jsd(log_p, log_q, beta)


def test_skew_kl_names_the_directions_it_knows():
    log_p, log_q, *_ = distributions()
    with pytest.raises(ValueError, match="'forward' and 'reverse'"):
        skew_kl(log_p, log_q, direction="both")
    with pytest.raises(ValueError, match=r"\[0, 1\)"):
        skew_kl(log_p, log_q, alpha=1.0)
