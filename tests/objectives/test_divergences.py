"""SFT and the methods that are one divergence per position."""

import pytest
import torch

from geosd import geometry as g
from geosd.objectives.objective import build_objective


def test_sft_is_cross_entropy(logits, token, states):
    expected = torch.nn.functional.cross_entropy(logits["student"], token, reduction="none")
    assert build_objective("sft").rollouts == "solution"
    torch.testing.assert_close(build_objective("sft").per_position(states())["loss"], expected)


@pytest.mark.parametrize(
    ("name", "hyperparameters", "divergence"),
    [
        ("fwdkl", {}, g.forward_kl),
        ("revkl", {}, g.reverse_kl),
        ("jsd", {}, g.jsd),
        ("jsd", {"beta": 0.1}, lambda p, q: g.jsd(p, q, 0.1)),
        ("skewkl", {}, g.skew_kl),
        (
            "skewkl",
            {"alpha": 0.3, "direction": "reverse"},
            lambda p, q: g.skew_kl(p, q, 0.3, "reverse"),
        ),
    ],
)
def test_a_divergence_control_is_its_divergence_everywhere(
    name, hyperparameters, divergence, states, run
):
    terms = run(build_objective(name, **hyperparameters))
    expected = divergence(states().log_p, states().log_q)
    torch.testing.assert_close(terms.loss, expected, rtol=1e-13, atol=1e-15)
    assert (terms.weight == 1).all()
    assert terms.parts == {} and terms.metrics == {}


def test_the_student_meets_the_teacher_in_the_right_order(states):
    inputs = states(slice(0, 1))
    p, q = inputs.log_p.exp(), inputs.log_q.exp()
    kept = p > 0
    forward = (q[kept] * (q[kept] / p[kept]).log()).sum()
    reverse = (p[kept] * (p[kept] / q[kept]).log()).sum()
    torch.testing.assert_close(build_objective("fwdkl").per_position(inputs)["loss"][0], forward)
    torch.testing.assert_close(build_objective("revkl").per_position(inputs)["loss"][0], reverse)
    assert abs(forward - reverse) > 1e-2
