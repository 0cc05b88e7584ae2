import math

import numpy as np
import pytest
import scipy.stats
import torch

from geosd.geometry import forward_kl
from geosd.objectives.objective import build_objective


def reference(log_p, log_q, lengths, vocabulary, r, omega, mode):
    """Weights by numpy and scipy, position by position."""
    p, q = log_p.exp().numpy(), log_q.exp().numpy()
    h = np.array([scipy.stats.entropy(row) / math.log(vocabulary) for row in p])
    d = np.array([scipy.stats.entropy(a[a > 0], b[a > 0]) for a, b in zip(p, q, strict=True)])
    h = np.minimum(h, np.quantile(h, 0.98))
    h, d = ((x - x.min()) / (x.max() - x.min()) for x in (h, d))
    score = 1 - (1 - h) * (1 - d) if mode == "soft_or" else omega * h + (1 - omega) * d
    weights, start = [], 0
    for length in lengths:
        own_score = score[start : start + length]
        count = math.ceil(round(r * length, 9))
        kept = sorted(sorted(range(length), key=lambda i, s=own_score: -s[i])[:count])
        weight = np.zeros(length)
        weight[kept] = own_score[kept] / own_score[kept].mean() if mode == "reweight" else 1
        weights.append(weight)
        start += length
    return np.concatenate(weights)


@pytest.mark.parametrize("mode", ["select", "reweight", "soft_or"])
@pytest.mark.parametrize(("r", "omega"), [(0.1, 0.5), (0.5, 0.5), (0.5, 0), (0.5, 1), (1, 0.25)])
def test_weights_agree_with_a_plain_reference(mode, r, omega, run, states, batch):
    mixed = {} if mode == "soft_or" else {"entropy_weight": omega}
    terms = run(build_objective("tip", retained_fraction=r, mode=mode, **mixed))
    inputs = states()
    lengths = batch.sequence.bincount().tolist()
    expected = reference(
        inputs.log_p.detach(), inputs.log_q.detach(), lengths, batch.vocabulary, r, omega, mode
    )
    np.testing.assert_allclose(terms.weight, expected, rtol=1e-9)
    assert terms.metrics["selected_share"] == pytest.approx((expected > 0).mean())
    expected = forward_kl(inputs.log_p, inputs.log_q, normalised=True)
    assert torch.equal(terms.loss, expected)


@pytest.mark.parametrize("mode", ["select", "soft_or"])
def test_retaining_all_it_is_fwdkl(mode, run, gradient):
    terms, fwdkl = (
        run(build_objective("tip", retained_fraction=1, mode=mode)),
        run(build_objective("fwdkl")),
    )
    assert torch.equal(terms.loss, fwdkl.loss) and torch.equal(terms.weight, fwdkl.weight)
    assert torch.equal(gradient(terms.loss.sum()), gradient(fwdkl.loss.sum()))


def test_reweighting_differs_from_fwdkl_even_when_all_are_retained(run):
    weight = run(build_objective("tip", retained_fraction=1, mode="reweight")).weight
    assert weight.std() > 0.1


def test_every_response_keeps_its_share_rounded_up(run, batch):
    weight = run(build_objective("tip", retained_fraction=0.5)).weight
    kept = [int(weight[batch.sequence == row].sum()) for row in range(4)]
    assert kept == [3, 1, 5, 2]


@pytest.mark.parametrize(("r", "length", "kept"), [(0.1, 30, 3), (0.07, 100, 7), (0.01, 5, 1)])
def test_rounding_up_is_not_misled_by_binary_fractions(r, length, kept):
    assert len(build_objective("tip", retained_fraction=r)._best(torch.rand(length))) == kept


def test_ties_go_to_the_earlier_position():
    best = build_objective("tip", retained_fraction=0.5)._best(torch.tensor([1.0, 2.0, 1.0, 1.0]))
    assert best.tolist() == [1, 0]
    many = build_objective("tip", retained_fraction=0.5)._best(torch.ones(5000))
    assert many.tolist() == list(range(2500))


def test_equal_scores_and_single_positions_are_finite():
    objective = build_objective("tip")
    for n in (1, 4):
        score = objective.scores(torch.full((n,), 0.7), torch.full((n,), 0.2), 50)
        assert (score == 0).all()
    reweight = build_objective("tip", mode="reweight")
    assert (reweight._weights(torch.zeros(3)) == 1).all()


def test_extreme_entropies_do_not_set_the_scale():
    entropy = torch.cat([torch.linspace(0, 1, 99), torch.tensor([1000.0])])
    clipped = build_objective("tip", entropy_weight=1).scores(entropy, torch.rand(100), 50)
    whole = build_objective("tip", entropy_weight=1, entropy_clip=1).scores(
        entropy, torch.rand(100), 50
    )
    assert clipped[50] > 0.4 and whole[50] < 0.01


def test_what_decides_the_selection_carries_no_graph(states):
    local = build_objective("tip").per_position(states())
    assert local["loss"].requires_grad
    assert not local["entropy"].requires_grad and not local["mismatch"].requires_grad
