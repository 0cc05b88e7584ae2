import mpmath
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from geosd.geometry import alpha_divergence, forward_kl, hellinger, reverse_kl


def distributions(seed=0, scale=2.0):
    generator = torch.Generator().manual_seed(seed)
    z = scale * torch.randn(2, 10, 7, dtype=torch.float64, generator=generator)
    return tuple(z.log_softmax(-1))


def exact(log_p, log_q, alpha):
    """The paper's formula with sixty digits, on renormalised p and q."""
    with mpmath.workdps(60):
        alpha = mpmath.mpf(alpha)
        p = [mpmath.exp(mpmath.mpf(x)) for x in log_p.tolist()]
        q = [mpmath.exp(mpmath.mpf(x)) for x in log_q.tolist()]
        total_p, total_q = sum(p), sum(q)
        affinity = sum(
            (a / total_p) ** ((1 - alpha) / 2) * (b / total_q) ** ((1 + alpha) / 2)
            for a, b in zip(p, q, strict=True)
        )
        return float(4 / (1 - alpha**2) * (1 - affinity))


@pytest.mark.parametrize("alpha", [-0.999999, -0.7, 0.0, 0.3, 0.9, 1 - 1e-9])
def test_agrees_with_sixty_digits_even_near_the_limits(alpha):
    log_p, log_q = distributions()
    found = alpha_divergence(log_p, log_q, alpha)
    for i in range(len(found)):
        assert found[i].item() == pytest.approx(exact(log_p[i], log_q[i], alpha), rel=1e-11)


def test_the_middle_is_four_times_hellinger():
    log_p, log_q = distributions()
    torch.testing.assert_close(
        alpha_divergence(log_p, log_q, 0), 4 * hellinger(log_p, log_q), rtol=1e-12, atol=0
    )


@pytest.mark.parametrize(
    ("sign", "limit"), [(1, forward_kl), (-1, reverse_kl)], ids=["forward", "reverse"]
)
def test_plus_one_is_the_forward_direction_and_minus_one_the_reverse(sign, limit):
    log_p, log_q = distributions()
    kl = limit(log_p, log_q)
    assert torch.equal(alpha_divergence(log_p, log_q, sign), kl)
    errors = [
        (alpha_divergence(log_p, log_q, sign * (1 - gap)) - kl).abs().max().item()
        for gap in (1e-2, 1e-4, 1e-6)
    ]
    assert errors[1] < errors[0] / 50 and errors[2] < errors[1] / 50


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**6), st.floats(-1, 1, allow_nan=False), st.sampled_from([0.01, 1.0, 30.0]))
def test_duality_and_sign(seed, alpha, scale):
    log_p, log_q = distributions(seed, scale)
    forward, backward = (
        alpha_divergence(log_p, log_q, alpha),
        alpha_divergence(log_q, log_p, -alpha),
    )
    torch.testing.assert_close(forward, backward, rtol=1e-10, atol=1e-13)
    assert (forward >= -1e-12).all()


def test_disjoint_supports_give_the_greatest_value():
    log_p, log_q = torch.tensor([[1.0, 0.0], [0.0, 1.0]], dtype=torch.float64).log()
    for alpha in (-0.9, 0.0, 0.5):
        assert alpha_divergence(log_p, log_q, alpha).item() == pytest.approx(4 / (1 - alpha**2))


def test_refuses_alpha_outside_the_family():
    with pytest.raises(ValueError, match=r"\[-1, 1\]"):
        alpha_divergence(*distributions(), 1.5)
