import math

import pytest
import torch

from geosd.objectives.objective import ObjectiveBatch, ObjectiveStates, build_objective
from geosd.objectives.reduce import mean_loss


def of_tokens(log_p, log_ref=None):
    return ObjectiveStates(None, None, None, log_p, None, log_ref)


def naive(log_p, log_old, log_ref, responses, rewards, clip, beta, epsilon):
    """Equation 3 of the GRPO paper, token by token, with plain Python numbers."""
    mean = sum(rewards) / len(rewards)
    std = math.sqrt(sum((r - mean) ** 2 for r in rewards) / (len(rewards) - 1))
    total = 0.0
    for reward, tokens in zip(rewards, responses, strict=True):
        advantage = (reward - mean) / (std + epsilon)
        inner = 0.0
        for t in tokens:
            ratio = math.exp(log_p[t] - log_old[t])
            bounded = min(max(ratio, 1 - clip), 1 + clip)
            d = log_ref[t] - log_p[t]
            inner += min(ratio * advantage, bounded * advantage)
            inner -= beta * (math.exp(d) - d - 1)
        total += inner / len(tokens)
    return -total / len(rewards)


def test_agrees_with_a_plain_loop_in_value_and_gradient(states, run, batch):
    inputs = states()
    terms = run(build_objective("grpo"))
    value = mean_loss(terms.loss, terms.weight, batch.sequence)
    log_p, log_ref = inputs.token_log_p.tolist(), inputs.token_log_ref.tolist()
    responses = [(batch.sequence == row).nonzero()[:, 0].tolist() for row in range(4)]
    rest = (responses, batch.reward.tolist(), 0.2, 0.03, 1e-4)
    assert value.item() == pytest.approx(naive(log_p, log_p, log_ref, *rest), abs=1e-6)

    x = inputs.token_log_p.detach().requires_grad_()
    objective = build_objective("grpo")
    again = objective.combine(objective.per_position(of_tokens(x, inputs.token_log_ref)), batch)
    mean_loss(again.loss, again.weight, batch.sequence).backward()
    step = 1e-6
    for t in range(len(log_p)):
        up, down = list(log_p), list(log_p)
        up[t] += step
        down[t] -= step
        slope = (naive(up, log_p, log_ref, *rest) - naive(down, log_p, log_ref, *rest)) / (2 * step)
        assert x.grad[t].item() == pytest.approx(slope, abs=1e-6)


def test_a_tiny_case_by_hand():
    # Rewards 1 and 0: mean 1/2, Bessel std sqrt(1/2), advantages +-1/sqrt(2).
    log_p = torch.tensor([-1.0, -2.0, -3.0], dtype=torch.float64, requires_grad=True)
    objective = build_objective("grpo", kl_coefficient=0, std_epsilon=1e-12)
    batch = ObjectiveBatch(torch.tensor([0, 0, 1]), torch.tensor([1.0, 0.0]), 10)
    terms = objective.combine(objective.per_position(of_tokens(log_p)), batch)
    a = 1 / math.sqrt(2)
    assert terms.loss.tolist() == pytest.approx([-a, -a, a])
    mean_loss(terms.loss, terms.weight, batch.sequence).backward()
    assert log_p.grad.tolist() == pytest.approx([-a / 4, -a / 4, a / 2])
    assert objective.needs == frozenset() and objective.rollouts == "group"


def test_the_penalty_is_k3_against_pi_0():
    log_p = torch.tensor([-1.0, -1.5], dtype=torch.float64, requires_grad=True)
    log_ref = torch.tensor([-1.2, -1.0], dtype=torch.float64)
    objective = build_objective("grpo", kl_coefficient=0.5)
    batch = ObjectiveBatch(torch.tensor([0, 1]), torch.ones(2), 10)
    terms = objective.combine(objective.per_position(of_tokens(log_p, log_ref)), batch)
    k3 = [math.exp(d) - d - 1 for d in (-0.2, 0.5)]
    assert terms.parts["kl"].tolist() == pytest.approx(k3)
    assert terms.loss.tolist() == pytest.approx([0.5 * k for k in k3])
    terms.loss.sum().backward()
    assert log_p.grad.tolist() == pytest.approx([0.5 * (1 - math.exp(d)) for d in (-0.2, 0.5)])


@pytest.mark.parametrize("reward", [0.0, 1.0])
def test_a_group_of_equal_rewards_moves_nothing_but_the_penalty(reward):
    log_p = torch.tensor([-1.0, -1.5], requires_grad=True)
    objective = build_objective("grpo", kl_coefficient=0)
    batch = ObjectiveBatch(torch.tensor([0, 1]), torch.full((2,), reward), 10)
    terms = objective.combine(objective.per_position(of_tokens(log_p)), batch)
    terms.loss.sum().backward()
    assert terms.metrics == {"reward": reward, "zero_variance": 1.0}
    assert (terms.loss == 0).all() and (log_p.grad == 0).all()


def test_metrics_of_a_mixed_group(run):
    assert run(build_objective("grpo")).metrics == {"reward": 0.5, "zero_variance": 0.0}


def test_the_clip_acts_once_the_policy_has_moved():
    # Never in this project, where each batch makes one update; but the formula is the method's.
    ratio = torch.tensor([1.5, 1.5, 0.5, 0.5], dtype=torch.float64, requires_grad=True)
    batch = ObjectiveBatch(torch.tensor([0, 1, 0, 1]), torch.tensor([1.0, 0.0]), 10)
    terms = build_objective("grpo", kl_coefficient=0, std_epsilon=1e-12).combine(
        {"ratio": ratio}, batch
    )
    a = 1 / math.sqrt(2)
    assert terms.loss.tolist() == pytest.approx([-1.2 * a, 1.5 * a, -0.5 * a, 0.8 * a])
    terms.loss.sum().backward()
    assert ratio.grad.tolist() == pytest.approx([0, a, -a, 0])


@pytest.mark.parametrize("reward", [None, torch.ones(1)])
def test_a_group_needs_two_rewards(reward, states, batch):
    objective = build_objective("grpo")
    with pytest.raises(ValueError, match="group of 2 or more"):
        objective.combine(
            objective.per_position(states()), ObjectiveBatch(batch.sequence, reward, 10)
        )
