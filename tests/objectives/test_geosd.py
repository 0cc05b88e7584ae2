import dataclasses

import pytest
import torch

from geosd.geometry import fisher_rao_squared, forward_kl, hellinger, jsd, reverse_kl
from geosd.objectives.objective import ObjectiveStates, build_objective


@pytest.mark.parametrize("strength", [0.1, 1.0, 3.0])
def test_the_loss_is_the_chord_and_the_squared_arc(strength, states, run):
    terms = run(build_objective("geosd", drift_penalty=strength))
    chord = hellinger(states().log_p, states().log_q)
    arc = fisher_rao_squared(states().log_p, states().log_anchor)
    torch.testing.assert_close(terms.loss, chord + strength * arc)
    torch.testing.assert_close(terms.parts, {"distil": chord.detach(), "prox": arc.detach()})


def test_without_penalty_it_is_hellinger_and_needs_no_anchor(states, run, gradient):
    objective = build_objective("geosd", drift_penalty=0)
    assert objective.needs == {"teacher"}
    terms = run(objective)
    expected = hellinger(states().log_p, states().log_q, normalised=True)
    assert torch.equal(terms.loss, expected)
    assert torch.equal(gradient(terms.loss.sum()), gradient(expected.sum()))
    assert set(terms.parts) == {"distil"}


def test_the_ablation_replaces_the_chord_alone(states, run):
    terms = run(build_objective("geosd", divergence="jsd", beta=0.3))
    torch.testing.assert_close(
        terms.parts["distil"], jsd(states().log_p, states().log_q, 0.3).detach()
    )
    assert torch.equal(terms.parts["prox"], run(build_objective("geosd")).parts["prox"])


@pytest.mark.parametrize(("name", "pull"), [("fwdkl", forward_kl), ("revkl", reverse_kl)])
def test_either_direction_of_kl_may_pull_in_the_place_of_the_chord(name, pull, states, run):
    terms = run(build_objective("geosd", divergence=name, drift_penalty=4.0))
    expected = pull(states().log_p, states().log_q)
    torch.testing.assert_close(terms.parts["distil"], expected.detach())
    arc = run(build_objective("geosd")).parts["prox"]
    torch.testing.assert_close(terms.loss.detach(), expected.detach() + 4.0 * arc)
    bare = run(build_objective("geosd", divergence=name, drift_penalty=0.0))
    assert torch.equal(bare.loss, run(build_objective(name)).loss)


@pytest.mark.parametrize(
    ("name", "share"), [("hellinger", 1 / 8), ("jsd", 1 / 8), ("fwdkl", 1 / 2), ("revkl", 1 / 2)]
)
def test_near_agreement_a_pull_has_its_share_of_the_arcs_curvature(name, share):
    """Of Q = sum (dp)^2 / p in float64, by a closed form: d_FR^2 is Q, up to third order."""
    p = torch.tensor([0.5, 0.3, 0.15, 0.05], dtype=torch.float64)
    step = 1e-4 * torch.tensor([1.0, -2.0, 0.5, 0.5], dtype=torch.float64)
    quadratic = (step**2 / p).sum()
    log_p, log_q = p.log()[None], (p + step).log()[None]
    states = ObjectiveStates(log_p, log_q, log_q, None, None, None)
    scalars = build_objective("geosd", divergence=name).per_position(states)
    torch.testing.assert_close(
        scalars["distil"][0] / quadratic, torch.tensor(share).double(), rtol=2e-3, atol=0
    )
    torch.testing.assert_close(
        scalars["prox"][0] / quadratic, torch.tensor(1.0).double(), rtol=2e-3, atol=0
    )


def test_the_gradient_at_a_fresh_checkpoint_is_the_teachers_pull_alone(states, run, gradient):
    fresh = dataclasses.replace(states(), log_anchor=states().log_p)
    with_anchor = build_objective("geosd").per_position(fresh)
    assert (with_anchor["prox"] == 0).all()
    pull = gradient(build_objective("geosd", drift_penalty=0).per_position(states())["loss"].sum())
    torch.testing.assert_close(gradient(with_anchor["loss"].sum()), pull)
