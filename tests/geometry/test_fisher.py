"""The Fisher information of a small policy, and what the appendix derives from it, in numbers.

The policy: 12 states, 7 tokens, 18 parameters, logits that are not linear in the parameters. Its
states are those of two trajectories, of 8 and of 4 positions, which weigh alike.
Source: the paper, appendix "Information geometry and the natural-gradient update".
"""

import math

import pytest
import torch
from torch.func import hessian, jacrev

from geosd import geometry as g
from geosd.objectives.geosd import GeoSD
from geosd.objectives.objective import ObjectiveStates
from geosd.objectives.reduce import mean_loss

LENGTHS, TOKENS, FEATURES = (8, 4), 7, 3
STATES = sum(LENGTHS)
TRAJECTORY = torch.repeat_interleave(torch.arange(2), torch.tensor(LENGTHS))
WEIGHTS = (1 / (2 * torch.tensor(LENGTHS, dtype=torch.float64)))[TRAJECTORY]
"""Of each state in a mean over trajectories of means over positions, 1/T inside the expectation."""
STEPS = [2.0**-k for k in range(4, 8)]


def normal(*shape, seed):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, dtype=torch.float64, generator=generator)


INPUTS = normal(STATES, FEATURES, seed=0)
CHECKPOINT = 0.5 * normal(FEATURES * (TOKENS - 1), seed=1)
DIRECTION = normal(FEATURES * (TOKENS - 1), seed=2)
DIRECTION = DIRECTION / DIRECTION.norm()


def log_policy(theta):
    """Log-probabilities [states, tokens]; the last token's logit is 0, so no direction is idle."""
    z = INPUTS @ theta.reshape(FEATURES, TOKENS - 1)
    z = z + 0.2 * torch.sin(2 * z)
    return torch.cat([z, torch.zeros(STATES, 1, dtype=z.dtype)], -1).log_softmax(-1)


def fisher(theta):
    """The covariance of the score, averaged over the states: [parameters, parameters]."""
    p, scores = log_policy(theta).exp(), jacrev(log_policy)(theta)
    return torch.einsum("s,sv,svi,svj->ij", WEIGHTS, p, scores, scores)


def prox(theta):
    """L_prox of the two trajectories, as GeoSD and the mean over their positions give it."""
    log_p, anchor = log_policy(theta), log_policy(CHECKPOINT)
    token = log_p[:, 0]
    states = ObjectiveStates(log_p, log_p.detach(), anchor, token, None, None)
    each = GeoSD().per_position(states)["prox"]
    return mean_loss(each, torch.ones_like(each), TRAJECTORY)


def orders(errors):
    """Observed orders of convergence when the step halves."""
    return [math.log2(a / b) for a, b in zip(errors, errors[1:], strict=False)]


def test_the_score_has_mean_zero():
    p, scores = log_policy(CHECKPOINT).exp(), jacrev(log_policy)(CHECKPOINT)
    assert torch.einsum("sv,svi->si", p, scores).abs().max() < 1e-14
    assert scores.abs().max() > 0.1


def test_the_covariance_of_the_score_is_the_expected_curvature():
    p, curvature = log_policy(CHECKPOINT).exp(), hessian(log_policy)(CHECKPOINT)
    expected = -torch.einsum("s,sv,svij->ij", WEIGHTS, p, curvature)
    torch.testing.assert_close(fisher(CHECKPOINT), expected, rtol=1e-10, atol=1e-13)


@pytest.mark.parametrize("divergence", [g.reverse_kl, g.forward_kl])
def test_kl_between_neighbours_is_half_the_fisher_form(divergence):
    log_p, errors = log_policy(CHECKPOINT), []
    for size in STEPS:
        step = size * DIRECTION
        kl = WEIGHTS @ divergence(log_p, log_policy(CHECKPOINT + step))
        errors.append(abs(kl - step @ fisher(CHECKPOINT) @ step / 2).item())
    assert orders(errors) == pytest.approx([3, 3, 3], abs=0.4)


def test_in_probabilities_the_metric_is_one_over_p():
    """The Hessian of KL(p || p + dp) at dp = 0, on the tangent space of the simplex."""
    log_p = log_policy(CHECKPOINT)[0]

    def kl(dp):
        return g.reverse_kl(log_p, (log_p.exp() + torch.cat([dp, -dp.sum(-1, keepdim=True)])).log())

    zero = torch.zeros(TOKENS - 1, dtype=torch.float64)
    curvature = torch.autograd.functional.hessian(kl, zero)
    dp = 1e-3 * normal(TOKENS - 1, seed=3)
    whole = torch.cat([dp, -dp.sum(-1, keepdim=True)])
    line_element = (whole.square() / log_p.exp()).sum()
    assert (dp @ curvature @ dp).item() == pytest.approx(line_element.item(), rel=1e-10)


def test_root_probabilities_make_the_metric_round():
    """ds^2 is the length of a short arc squared, and 4 |du|^2 with u = sqrt(p)."""
    p, errors = log_policy(CHECKPOINT)[0].exp(), []
    dp = normal(TOKENS, seed=4)
    dp = p.min() * (dp - dp.mean())
    for size in STEPS:
        q = p + size * dp
        round_metric = 4 * (q.sqrt() - p.sqrt()).square().sum()
        errors.append(abs(g.fisher_rao_squared(p.log(), q.log()) - round_metric).item())
        line_element = ((size * dp).square() / p).sum()
        assert round_metric.item() == pytest.approx(line_element.item(), rel=2 * size)
    assert orders(errors) == pytest.approx([4, 4, 4], abs=0.2)


def test_the_metric_of_the_parameters_is_the_round_one_pulled_back():
    """4 du^T du with u = sqrt(p(theta)): what the sphere's metric makes of a step in theta."""
    u = jacrev(lambda theta: (log_policy(theta) / 2).exp())(CHECKPOINT)
    pulled_back = 4 * torch.einsum("s,svi,svj->ij", WEIGHTS, u, u)
    torch.testing.assert_close(fisher(CHECKPOINT), pulled_back, rtol=1e-12, atol=1e-15)


def test_at_the_checkpoint_the_proximal_loss_has_no_slope_and_twice_the_fisher_as_curvature():
    torch.testing.assert_close(jacrev(prox)(CHECKPOINT), torch.zeros_like(CHECKPOINT))
    curvature = hessian(prox)(CHECKPOINT)
    torch.testing.assert_close(curvature, 2 * fisher(CHECKPOINT), rtol=1e-10, atol=1e-13)


def test_differences_of_the_proximal_loss_alone_give_the_fisher_form():
    """Halfway between a step and its opposite the third order cancels; no derivative is taken."""
    metric, errors = fisher(CHECKPOINT), []
    for size in STEPS:
        delta = size * DIRECTION
        both = (prox(CHECKPOINT + delta) + prox(CHECKPOINT - delta)) / 2
        errors.append(abs(both - delta @ metric @ delta).item())
    assert orders(errors) == pytest.approx([4, 4, 4], abs=0.2)


def test_the_proximal_loss_is_the_checkpoints_fisher_form():
    metric, errors = fisher(CHECKPOINT), []
    for size in STEPS:
        delta = size * DIRECTION
        errors.append(abs(prox(CHECKPOINT + delta) - delta @ metric @ delta).item())
    assert orders(errors) == pytest.approx([3, 3, 3], abs=0.4)


def test_the_proximal_gradient_is_twice_the_fisher_times_the_drift():
    metric, errors = fisher(CHECKPOINT), []
    for size in STEPS:
        delta = size * DIRECTION
        gradient = jacrev(prox)(CHECKPOINT + delta)
        errors.append((gradient - 2 * metric @ delta).norm().item())
    assert orders(errors) == pytest.approx([2, 2, 2], abs=0.4)


def test_preconditioned_the_proximal_term_pulls_back_to_the_checkpoint():
    """-2 eta lambda F_k^-1 F_ckpt Delta; to first order that of an L2 penalty."""
    rate, strength = 0.1, 3.0
    against_metric, against_l2 = [], []
    for size in STEPS:
        delta = size * DIRECTION
        information = fisher(CHECKPOINT + delta)
        natural = (
            -rate * strength * torch.linalg.solve(information, jacrev(prox)(CHECKPOINT + delta))
        )
        pull = torch.linalg.solve(information, fisher(CHECKPOINT) @ delta)
        against_metric.append((natural + 2 * rate * strength * pull).norm().item())
        against_l2.append((natural + 2 * rate * strength * delta).norm().item())
    assert torch.linalg.cond(fisher(CHECKPOINT)) < 1e4
    assert orders(against_metric) == pytest.approx([2, 2, 2], abs=0.4)
    assert orders(against_l2) == pytest.approx([2, 2, 2], abs=0.4)
