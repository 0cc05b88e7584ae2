import dataclasses
import math

import pytest
import torch

from geosd.geometry import forward_kl, reverse_kl
from geosd.objectives.objective import build_objective

OUTLIERS = ("scaled", "clamp", "mask", "forward")


@pytest.mark.parametrize("agreement", ["sampled", "overlap"])
@pytest.mark.parametrize("outlier", OUTLIERS)
def test_without_a_threshold_it_is_revkl(outlier, agreement, run, gradient):
    terms = run(
        build_objective("tropd", agreement_threshold=0, outlier=outlier, agreement=agreement)
    )
    revkl = run(build_objective("revkl"))
    assert torch.equal(terms.loss, revkl.loss) and torch.equal(terms.weight, revkl.weight)
    assert torch.equal(gradient(terms.loss.sum()), gradient(revkl.loss.sum()))
    assert terms.metrics["reliable_share"] == 1.0


@pytest.mark.parametrize("outlier", ["scaled", "clamp"])
def test_with_a_boundless_cap_it_is_revkl(outlier, run, gradient):
    terms = run(
        build_objective("tropd", outlier_cap=math.inf, outlier=outlier, agreement_threshold=1)
    )
    revkl = run(build_objective("revkl"))
    assert torch.equal(terms.loss, revkl.loss)
    assert torch.equal(gradient(terms.loss.sum()), gradient(revkl.loss.sum()))


@pytest.mark.parametrize("outlier", ["scaled", "clamp"])
def test_with_a_vanishing_cap_it_masks(outlier, run, gradient):
    mask = run(build_objective("tropd", outlier="mask"))
    assert 0 < mask.metrics["reliable_share"] < 1
    for cap in (1e-9, 0):
        terms = run(build_objective("tropd", outlier=outlier, outlier_cap=cap))
        assert torch.equal(terms.weight, mask.weight)
        torch.testing.assert_close(terms.loss, mask.loss, rtol=0, atol=1e-8)
        expected = gradient(mask.loss.sum())
        torch.testing.assert_close(gradient(terms.loss.sum()), expected, rtol=0, atol=1e-8)


def test_agreement_is_the_acceptance_of_the_sampled_token(states, logits, token):
    local = build_objective("tropd").per_position(states())
    p, q = (
        logits[name].softmax(-1).gather(-1, token[:, None])[:, 0] for name in ("student", "teacher")
    )
    expected = torch.minimum(q / p, torch.ones_like(p)).detach()
    torch.testing.assert_close(local["agreement"], expected)
    assert torch.equal(local["reliable"], (expected >= 0.6).double())


def test_overlap_is_the_expected_acceptance(states):
    local = build_objective("tropd", agreement="overlap").per_position(states())
    p, q = states().log_p.exp().detach(), states().log_q.exp().detach()
    accepted = torch.where(p > 0, torch.minimum(q / p, torch.ones_like(p)), 0.0)
    torch.testing.assert_close(local["agreement"], (p * accepted).sum(-1))


def test_regions_get_their_own_update(states, gradient):
    cap = 0.1
    kl = reverse_kl(states().log_p, states().log_q)
    reliable = build_objective("tropd").per_position(states())["reliable"].bool()
    large = ~reliable & (kl > cap)
    assert reliable.any() and large.any()
    revkl = gradient(kl.sum())
    factor = torch.where(large, cap / kl, 1.0).detach()
    for outlier, value, slope in (
        ("scaled", torch.where(large, cap, kl), factor),
        ("clamp", torch.where(large, cap, kl), (~large).double()),
        ("mask", torch.where(reliable, kl, 0.0), reliable.double()),
    ):
        loss = build_objective("tropd", outlier=outlier, outlier_cap=cap).per_position(states())[
            "loss"
        ]
        torch.testing.assert_close(loss, value.to(loss.dtype))
        torch.testing.assert_close(gradient(loss.sum()), revkl * slope[:, None])


def test_forward_outliers_sum_over_the_teachers_top_tokens(states):
    local = build_objective("tropd", outlier="forward", outlier_top_k=3).per_position(states())
    log_p, log_q = states().log_p.detach(), states().log_q.detach()
    for i in range(len(log_q)):
        if not local["reliable"][i]:
            best = sorted(range(log_q.shape[1]), key=lambda j: -log_q[i, j].item())[:3]
            expected = sum(log_q[i, j].exp() * (log_q[i, j] - log_p[i, j]) for j in best)
            torch.testing.assert_close(local["loss"][i].detach(), expected)


def test_forward_outliers_with_all_tokens_are_forward_kl(states):
    local = build_objective("tropd", outlier="forward", agreement_threshold=1).per_position(
        states()
    )
    outlier = ~local["reliable"].bool()
    expected = forward_kl(states().log_p, states().log_q)
    torch.testing.assert_close(local["loss"][outlier], expected[outlier])


def test_at_agreement_all_positions_are_reliable_and_the_loss_is_zero(states):
    inputs = states()
    same = dataclasses.replace(inputs, log_q=inputs.log_p, token_log_q=inputs.token_log_p)
    local = build_objective("tropd", agreement_threshold=1).per_position(same)
    assert (local["reliable"] == 1).all()
    assert local["loss"].abs().max() < 1e-14
