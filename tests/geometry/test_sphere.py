import math

import mpmath
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from geosd.geometry import fisher_rao, fisher_rao_squared, hellinger, overlap


def exact_arc(log_p, log_q):
    """2 arccos(sum sqrt(p q)) with sixty digits, on renormalised p and q."""
    with mpmath.workdps(60):
        p = [mpmath.exp(mpmath.mpf(x)) for x in log_p.tolist()]
        q = [mpmath.exp(mpmath.mpf(x)) for x in log_q.tolist()]
        rho = sum(mpmath.sqrt(a / sum(p) * b / sum(q)) for a, b in zip(p, q, strict=True))
        return float(2 * mpmath.acos(rho))


def pair(distance, tokens=6):
    generator = torch.Generator().manual_seed(7)
    z = torch.randn(tokens, dtype=torch.float64, generator=generator)
    move = torch.randn(tokens, dtype=torch.float64, generator=generator)
    return z.log_softmax(-1), (z + distance * move).log_softmax(-1)


@pytest.mark.parametrize("distance", [1e-5, 1e-3, 0.1, 0.2, 0.22, 0.25, 0.3, 1.0, 5.0, 40.0])
def test_the_arc_agrees_with_sixty_digits_on_both_sides_of_the_series(distance):
    log_p, log_q = pair(distance)
    exact = exact_arc(log_p, log_q)
    assert fisher_rao(log_p, log_q).item() == pytest.approx(exact, rel=1e-9, abs=0)
    assert fisher_rao_squared(log_p, log_q).item() == pytest.approx(exact**2, rel=1e-9, abs=0)


def test_series_and_arc_meet_without_a_step():
    # D_H passes 0.01, where the series ends, between two neighbouring distances.
    log_q = torch.tensor([0.0, 0.0], dtype=torch.float64).log_softmax(-1)
    z = torch.linspace(0.2, 0.8, 4001, dtype=torch.float64)
    z.requires_grad_()
    log_p = torch.stack([z, -z], -1).log_softmax(-1)
    chord = hellinger(log_p, log_q)
    assert chord.min() < 0.01 < chord.max()
    square = fisher_rao_squared(log_p, log_q)
    (slope,) = torch.autograd.grad(square.sum(), z)
    for curve in (square.detach(), slope):
        assert curve.diff().diff().abs().max() < 1e-6


def test_chord_is_one_minus_overlap_and_keeps_its_digits_near_agreement():
    log_p, log_q = pair(0.8)
    assert hellinger(log_p, log_q).item() == pytest.approx(1 - overlap(log_p, log_q).item())
    near = [each.float() for each in pair(1e-4)]
    exact = exact_arc(*pair(1e-4)) ** 2 / 8
    assert hellinger(*near).item() == pytest.approx(exact, rel=5e-3)
    # Subtracting the overlap from one in single precision leaves nothing of it.
    assert (1 - overlap(*near)).item() != pytest.approx(exact, rel=0.5)


def test_hand_computed_values():
    log_p = torch.tensor([0.25, 0.75], dtype=torch.float64).log()
    log_q = torch.tensor([1.0, 0.0], dtype=torch.float64).log()
    assert overlap(log_p, log_q).item() == pytest.approx(0.5)
    assert hellinger(log_p, log_q).item() == pytest.approx(0.5)
    assert fisher_rao(log_p, log_q).item() == pytest.approx(2 * math.pi / 3)
    assert fisher_rao_squared(log_p, log_q).item() == pytest.approx(4 * math.pi**2 / 9)


def test_disjoint_distributions_are_as_far_as_can_be():
    log_p, log_q = torch.tensor([[1.0, 0.0], [0.0, 1.0]], dtype=torch.float64).log()
    assert overlap(log_p, log_q) == 0
    assert hellinger(log_p, log_q) == 1
    assert fisher_rao(log_p, log_q).item() == pytest.approx(math.pi)
    assert fisher_rao_squared(log_p, log_q).item() == pytest.approx(math.pi**2)


def test_no_excess_of_mass_leads_beyond_the_quarter_circle():
    # Rounding can make D_H a hair more than 1; masses of 3 make it plain.
    log_p = torch.tensor([3.0, 0.0]).log().requires_grad_()
    log_q = torch.tensor([0.0, 3.0]).log()
    for distance, most in ((fisher_rao, math.pi), (fisher_rao_squared, math.pi**2)):
        value = distance(log_p, log_q)
        value.backward()
        assert value.item() == pytest.approx(most)
        assert log_p.grad.isfinite().all()


def test_distance_to_oneself_is_zero_with_gradient_zero():
    z = torch.randn(4, 9, dtype=torch.float64, requires_grad=True)
    for distance in (hellinger, fisher_rao, fisher_rao_squared):
        value = distance(z.log_softmax(-1), z.detach().log_softmax(-1))
        (gradient,) = torch.autograd.grad(value.sum(), z)
        assert (value == 0).all()
        assert gradient.abs().max() < 1e-15


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**6), st.integers(2, 12), st.sampled_from([0.01, 1.0, 10.0, 100.0]))
def test_the_arc_obeys_the_triangle_inequality_and_is_symmetric(seed, tokens, scale):
    generator = torch.Generator().manual_seed(seed)
    z = scale * torch.randn(3, tokens, dtype=torch.float64, generator=generator)
    a, b, c = z.log_softmax(-1)
    assert fisher_rao(a, c) <= fisher_rao(a, b) + fisher_rao(b, c) + 1e-12
    assert fisher_rao(a, b) == fisher_rao(b, a)
    assert 0 <= hellinger(a, b) <= 1 + 1e-15
    assert 0 <= fisher_rao(a, b) <= math.pi + 1e-15
