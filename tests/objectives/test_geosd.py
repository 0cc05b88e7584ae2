import dataclasses

import pytest
import torch

from geosd.geometry import fisher_rao_squared, hellinger, jsd
from geosd.objectives.objective import build


@pytest.mark.parametrize("strength", [0.1, 1.0, 3.0])
def test_the_loss_is_the_chord_and_the_squared_arc(strength, states, run):
    terms = run(build("geosd", drift_penalty=strength))
    chord = hellinger(states().log_p, states().log_q)
    arc = fisher_rao_squared(states().log_p, states().log_anchor)
    torch.testing.assert_close(terms.loss, chord + strength * arc)
    torch.testing.assert_close(terms.parts, {"distil": chord.detach(), "prox": arc.detach()})


def test_without_penalty_it_is_hellinger_and_needs_no_anchor(states, run, gradient):
    objective = build("geosd", drift_penalty=0)
    assert objective.needs == {"teacher"}
    terms = run(objective)
    expected = hellinger(states().log_p, states().log_q, normalised=True)
    assert torch.equal(terms.loss, expected)
    assert torch.equal(gradient(terms.loss.sum()), gradient(expected.sum()))
    assert set(terms.parts) == {"distil"}


def test_the_ablation_replaces_the_chord_alone(states, run):
    terms = run(build("geosd", divergence="jsd", beta=0.3))
    torch.testing.assert_close(
        terms.parts["distil"], jsd(states().log_p, states().log_q, 0.3).detach()
    )
    assert torch.equal(terms.parts["prox"], run(build("geosd")).parts["prox"])


def test_the_gradient_at_a_fresh_checkpoint_is_the_teachers_pull_alone(states, run, gradient):
    fresh = dataclasses.replace(states(), log_anchor=states().log_p)
    with_anchor = build("geosd").per_position(fresh)
    assert (with_anchor["prox"] == 0).all()
    pull = gradient(build("geosd", drift_penalty=0).per_position(states())["loss"].sum())
    torch.testing.assert_close(gradient(with_anchor["loss"].sum()), pull)
