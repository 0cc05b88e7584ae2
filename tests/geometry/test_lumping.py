"""Lumped distributions against sums of probabilities in float64."""

import pytest
import torch

from geosd.geometry import fisher_rao_squared, forward_kl, hellinger
from geosd.geometry.lumping import append_lump, lump

K, V = 5, 23


@pytest.fixture
def models():
    """Logits of a student, log-probabilities of a teacher, and the teacher's top K tokens."""
    generator = torch.Generator().manual_seed(3)
    logits, teacher = 3 * torch.randn(2, 7, V, generator=generator, dtype=torch.float64)
    log_q = teacher.log_softmax(-1)
    return logits, log_q, log_q.topk(K).indices


def test_the_last_outcome_holds_what_the_known_tokens_leave(models):
    logits, log_q, ids = models
    for lumped, full in ((lump(logits, ids), logits.softmax(-1)), (None, log_q.exp())):
        known = full.gather(-1, ids)
        lumped = append_lump(log_q.gather(-1, ids)) if lumped is None else lumped
        expected = torch.cat([known, 1 - known.sum(-1, keepdim=True)], -1)
        torch.testing.assert_close(lumped.exp(), expected, rtol=1e-12, atol=1e-13)


def test_the_divergence_is_that_of_the_merged_probabilities(models):
    logits, log_q, ids = models
    p, q = logits.softmax(-1).gather(-1, ids), log_q.exp().gather(-1, ids)
    overlap = (p * q).sqrt().sum(-1) + ((1 - p.sum(-1)) * (1 - q.sum(-1))).sqrt()
    value = hellinger(lump(logits, ids), append_lump(log_q.gather(-1, ids)))
    torch.testing.assert_close(value, 1 - overlap, rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("divergence", [hellinger, fisher_rao_squared, forward_kl])
def test_lumping_never_raises_a_divergence(models, divergence):
    logits, log_q, ids = models
    lumped = divergence(lump(logits, ids), append_lump(log_q.gather(-1, ids)))
    assert (lumped < divergence(logits, log_q)).all()
    assert (lumped > 0).all()


def test_it_keeps_a_divergence_where_the_others_have_one_ratio(models):
    _, log_q, ids = models
    logits = log_q.scatter_add(-1, ids, torch.linspace(-2, 2, K).double().expand_as(ids))
    lumped = hellinger(lump(logits, ids), append_lump(log_q.gather(-1, ids)))
    torch.testing.assert_close(lumped, hellinger(logits, log_q), rtol=1e-11, atol=1e-12)


def test_the_gradient_is_that_of_finite_differences(models):
    logits, log_q, ids = models
    known = append_lump(log_q.gather(-1, ids))
    logits.requires_grad_()
    assert torch.autograd.gradcheck(lambda at: hellinger(lump(at, ids), known), logits)


def test_without_other_tokens_nothing_is_lumped(models):
    logits, log_q, _ = models
    logits = logits.float().requires_grad_()
    ids = torch.arange(V).flip(0).expand(7, V)
    value = hellinger(lump(logits, ids), append_lump(log_q.float().gather(-1, ids)))
    torch.testing.assert_close(value, hellinger(logits, log_q.float()))
    value.sum().backward()
    assert logits.grad.isfinite().all()


def test_known_tokens_that_round_to_more_than_one_leave_almost_nothing():
    log_q = torch.tensor([[0.7, 0.3]]).log() + 1e-6
    lumped = append_lump(log_q)
    assert lumped.isfinite().all() and lumped[0, -1].exp() < 1e-30
