"""OPSD's clipped forward KL against its definition, and its gradient against a closed form."""

import math

import pytest
import torch
from torch.nn import functional

from geosd.objectives.objective import ObjectiveStates, build_objective

Z = [[0.3, -1.2, 2.0, 0.4], [5.0, 0.0, -3.0, 1.0], [0.0, 0.0, 0.0, 0.0]]
ZQ = [[2.5, -1.0, 0.1, 0.4], [-2.0, 4.0, 0.5, 1.0], [0.0, 0.0, 0.0, 0.0]]
TAU, T = 0.05, 1.1


def loss(z, zq, clip=TAU, temperature=T):
    """[N] of the objective at logits of student and teacher [N, V]."""
    nothing = torch.zeros(len(z), dtype=z.dtype)
    states = ObjectiveStates(z.log_softmax(-1), zq.log_softmax(-1), None, nothing, nothing, nothing)
    return build_objective("opsd", clip=clip, temperature=temperature).per_position(states)["loss"]


def by_hand(z, zq, clip, temperature):
    """The same number in plain Python, and the tokens that are clipped."""
    p, q = ([math.exp(x / temperature) for x in row] for row in (z, zq))
    p, q = [x / sum(p) for x in p], [x / sum(q) for x in q]
    terms = [b * math.log(b / a) for a, b in zip(p, q, strict=True)]
    return sum(min(term, clip) for term in terms), p, q, [term > clip for term in terms]


@pytest.mark.parametrize(("clip", "temperature"), [(TAU, T), (0.3, 1.0), (math.inf, 2.0)])
def test_value_and_gradient_are_those_of_the_definition(clip, temperature):
    """With C the clipped tokens, Q the teacher's mass outside C: (Q p_j - [j not in C] q_j)/T."""
    z, zq = (torch.tensor(rows, dtype=torch.float64) for rows in (Z, ZQ))
    z.requires_grad_()
    value = loss(z, zq, clip, temperature)
    (gradient,) = torch.autograd.grad(value.sum(), z)
    clipped_somewhere = False
    for row, at in enumerate(zip(Z, ZQ, strict=True)):
        expected, p, q, clipped = by_hand(*at, clip, temperature)
        outside = sum(b for b, cut in zip(q, clipped, strict=True) if not cut)
        closed = [
            (outside * a - (0 if cut else b)) / temperature
            for a, b, cut in zip(p, q, clipped, strict=True)
        ]
        assert value[row].item() == pytest.approx(expected, rel=1e-12, abs=1e-15)
        assert gradient[row].tolist() == pytest.approx(closed, rel=1e-10, abs=1e-15)
        clipped_somewhere |= any(clipped)
    assert clipped_somewhere == math.isfinite(clip)
    assert torch.autograd.gradcheck(lambda z: loss(z, zq, clip, temperature), z)


def test_it_is_torchs_divergence_clamped_entry_by_entry_before_the_sum():
    """The form of the released code; a clamp of the sum would never be negative."""
    z, zq = (torch.tensor(rows, dtype=torch.float64) for rows in (Z, ZQ))
    log_p, log_q = ((logits / T).log_softmax(-1) for logits in (z, zq))
    entries = functional.kl_div(log_p, log_q, reduction="none", log_target=True)
    torch.testing.assert_close(loss(z, zq), entries.clamp(max=TAU).sum(-1), rtol=1e-12, atol=1e-15)
    assert loss(z, zq)[0] < 0 < TAU < entries.sum(-1)[0]


def test_without_clip_and_temperature_it_is_fwdkl(run, gradient):
    plain, fwdkl = (
        run(build_objective("opsd", clip=math.inf, temperature=1.0)),
        run(build_objective("fwdkl")),
    )
    torch.testing.assert_close(plain.loss, fwdkl.loss, rtol=1e-12, atol=1e-14)
    torch.testing.assert_close(gradient(plain.loss.sum()), gradient(fwdkl.loss.sum()))


def test_a_slot_that_a_position_does_not_fill_changes_nothing():
    z, zq = (torch.tensor(rows, dtype=torch.float64) for rows in (Z, ZQ))
    empty = torch.full((len(z), 1), -math.inf, dtype=torch.float64)
    wider = (torch.cat([logits, empty], -1) for logits in (z, zq))
    assert torch.equal(loss(*wider), loss(z, zq))
