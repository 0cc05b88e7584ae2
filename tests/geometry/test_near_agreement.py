"""Near agreement every divergence is the Fisher quadratic Q = sum eps_i^2 / p_i, to known factors.

Source: the paper, "Near agreement, all divergences coincide".
"""

import math

import pytest
import torch

from geosd import geometry as g

QUADRATIC = {
    "forward_kl": (g.forward_kl, 1 / 2),
    "reverse_kl": (g.reverse_kl, 1 / 2),
    "hellinger": (g.hellinger, 1 / 8),
    "fisher_rao_squared": (g.fisher_rao_squared, 1),
    "alpha .4": (lambda p, q: g.alpha_divergence(p, q, 0.4), 1 / 2),
    "jsd .25": (lambda p, q: g.jsd(p, q, 0.25), 0.25 * 0.75 / 2),
    "skew .1": (lambda p, q: g.skew_kl(p, q, 0.1), 0.9**2 / 2),
    "skew reverse .1": (lambda p, q: g.skew_kl(p, q, 0.1, "reverse"), 0.9**2 / 2),
}
STEPS = [2.0**-k for k in range(5, 9)]


def pair(t):
    """p, and q = p + t eps, on nine tokens; with Q(t eps)."""
    generator = torch.Generator().manual_seed(3)
    p = (1.5 * torch.randn(9, dtype=torch.float64, generator=generator)).softmax(-1)
    eps = torch.randn(9, dtype=torch.float64, generator=generator)
    eps = t * p.min() * (eps - eps.mean())
    return p.log(), (p + eps).log(), (eps**2 / p).sum()


def orders(errors):
    """Observed orders of convergence when t halves."""
    return [math.log2(a / b) for a, b in zip(errors, errors[1:], strict=False)]


@pytest.mark.parametrize("name", QUADRATIC)
def test_a_divergence_is_its_fisher_quadratic_up_to_third_order(name):
    divergence, factor = QUADRATIC[name]
    errors = []
    for t in STEPS:
        log_p, log_q, quadratic = pair(t)
        errors.append(abs(divergence(log_p, log_q) - factor * quadratic).item())
    assert orders(errors) == pytest.approx([3, 3, 3], abs=0.1)


def test_fisher_rao_is_the_root_of_the_quadratic():
    log_p, log_q, quadratic = pair(1e-4)
    assert g.fisher_rao(log_p, log_q).item() == pytest.approx(quadratic.sqrt().item(), rel=1e-4)


def test_arc_squared_and_eight_chords_differ_at_fourth_order():
    errors = []
    for t in STEPS:
        log_p, log_q, _ = pair(t)
        errors.append((g.fisher_rao_squared(log_p, log_q) - 8 * g.hellinger(log_p, log_q)).item())
    assert all(error > 0 for error in errors)
    # The paper bounds the difference by the third order; 4/3 D_H^2 makes it the fourth.
    assert orders(errors) == pytest.approx([4, 4, 4], abs=0.05)
