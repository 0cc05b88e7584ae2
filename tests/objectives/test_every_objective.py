"""What holds for each method, also for one added tomorrow."""

import dataclasses

import pytest
import torch

from geosd.objectives.objective import (
    Objective,
    ObjectiveBatch,
    ObjectiveStates,
    build_objective,
    names,
)
from geosd.objectives.reduce import mean_loss

VARIANTS = [
    *[(name, {}) for name in names()],
    *[("geosd", {"divergence": name}) for name in ("jsd", "fwdkl", "revkl")],
    ("geosd", {"drift_penalty": 0}),
    ("grpo", {"kl_coefficient": 0}),
    ("opsd", {"clip": float("inf")}),
    ("skewkl", {"direction": "reverse"}),
    *[("tropd", {"outlier": outlier}) for outlier in ("clamp", "mask", "forward")],
    ("tropd", {"agreement": "overlap"}),
    ("tip", {"mode": "reweight"}),
    ("tip", {"mode": "soft_or"}),
]
every = pytest.mark.parametrize(
    ("name", "hyperparameters"), VARIANTS, ids=[f"{n}-{h}" for n, h in VARIANTS]
)


@every
def test_terms_are_per_position_and_only_the_loss_has_a_graph(name, hyperparameters, run, batch):
    terms = run(build_objective(name, **hyperparameters))
    n = len(batch.sequence)
    for value in (terms.loss, terms.weight, *terms.parts.values()):
        assert value.shape == (n,) and value.isfinite().all()
    assert terms.loss.requires_grad
    assert not terms.weight.requires_grad and (terms.weight >= 0).all()
    assert not any(part.requires_grad for part in terms.parts.values())
    assert all(isinstance(value, float) for value in terms.metrics.values())


@every
def test_gradients_reach_the_student_and_no_other_model(name, hyperparameters, run, batch, logits):
    terms = run(build_objective(name, **hyperparameters))
    mean_loss(terms.loss, terms.weight, batch.sequence).backward()
    assert logits["student"].grad.abs().sum() > 0
    for other in ("teacher", "anchor", "reference"):
        assert logits[other].grad is None


@every
def test_chunks_of_positions_give_what_the_whole_gives(name, hyperparameters, states, batch):
    objective = build_objective(name, **hyperparameters)
    whole = objective.per_position(states())
    pieces = [objective.per_position(states(slice(start, start + 4))) for start in range(0, 18, 4)]
    for key, value in whole.items():
        joined = torch.cat([piece[key] for piece in pieces])
        torch.testing.assert_close(joined, value, rtol=1e-12, atol=1e-14)


@every
def test_the_gradient_may_pass_through_the_scalars_in_two_stages(
    name, hyperparameters, states, batch, gradient
):
    """A loop may combine detached scalars first, then send their gradients into the chunks."""
    objective = build_objective(name, **hyperparameters)
    local = objective.per_position(states())

    def scalar(quantities):
        terms = objective.combine(quantities, batch)
        return mean_loss(terms.loss, terms.weight, batch.sequence)

    leaves = {k: v.detach().requires_grad_(v.requires_grad) for k, v in local.items()}
    scalar(leaves).backward()
    through = sum(
        (leaves[k].grad * v).sum() for k, v in local.items() if leaves[k].grad is not None
    )
    torch.testing.assert_close(gradient(through), gradient(scalar(local)))


@every
def test_a_method_reads_only_the_models_it_needs(name, hyperparameters, states, batch):
    objective = build_objective(name, **hyperparameters)
    owner = {
        "log_q": "teacher",
        "token_log_q": "teacher",
        "log_anchor": "anchor",
        "token_log_ref": "reference",
    }
    absent = {field: None for field, model in owner.items() if model not in objective.needs}
    if not objective.needs & {"teacher", "anchor"}:
        absent["log_p"] = None
    objective.combine(objective.per_position(dataclasses.replace(states(), **absent)), batch)
    for model in objective.needs:
        without = {field: None for field, source in owner.items() if source == model}
        with pytest.raises(ValueError, match="Hint: name it in the objective's `needs`"):
            objective.per_position(dataclasses.replace(states(), **without))


@every
def test_a_method_is_a_frozen_value(name, hyperparameters):
    objective = build_objective(name, **hyperparameters)
    assert isinstance(objective, Objective)
    assert objective == build_objective(name, **hyperparameters)
    assert objective.rollouts in ("student", "group", "solution")
    assert objective.needs <= {"teacher", "anchor", "reference"}
    for field in dataclasses.fields(objective):
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(objective, field.name, 0)


@every
def test_loss_and_gradient_stay_finite_at_the_extremes(name, hyperparameters, batch):
    objective = build_objective(name, **hyperparameters)
    off = float("-inf")
    rows = [[0, off, off, 0], [40, -40, 0, off], [0, 0, 0, off], [off, 90, 0, off]]
    z = torch.tensor(rows).requires_grad_()
    other = torch.tensor([rows[3], rows[1][::-1], rows[2], rows[3]])
    log_p, log_q = z.log_softmax(-1), other.log_softmax(-1)
    chosen = log_p.gather(-1, torch.tensor([[0], [0], [1], [1]]))[:, 0]
    states = ObjectiveStates(log_p, log_q, log_q, chosen, chosen.detach() - 3, chosen.detach() + 3)
    two_responses = ObjectiveBatch(torch.tensor([0, 0, 1, 1]), torch.tensor([0.0, 1.0]), 4)
    terms = objective.combine(objective.per_position(states), two_responses)
    loss = mean_loss(terms.loss, terms.weight, two_responses.sequence)
    loss.backward()
    assert loss.isfinite() and z.grad.isfinite().all()
