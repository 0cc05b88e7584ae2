import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from geosd.objectives.reduce import mean_loss, mean_loss_terms


def naive(loss, weight, sequence, over):
    """Both means, position by position."""
    if over == "token":
        total = sum(weight)
        return sum(w * x for w, x in zip(weight, loss, strict=True)) / total if total else 0.0
    rows = max(sequence) + 1
    means = []
    for row in range(rows):
        at = [i for i, r in enumerate(sequence) if r == row]
        total = sum(weight[i] for i in at)
        means.append(sum(weight[i] * loss[i] for i in at) / total if total else 0.0)
    return sum(means) / rows


def test_uneven_lengths_weigh_alike_by_sequence_and_by_length_by_token():
    loss = torch.tensor([1.0, 1.0, 1.0, 5.0])
    sequence = torch.tensor([0, 0, 0, 1])
    assert mean_loss(loss, torch.ones(4), sequence, "sequence") == 3.0
    assert mean_loss(loss, torch.ones(4), sequence, "token") == 2.0
    assert mean_loss(loss, torch.ones(4), sequence) == 3.0


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 30), st.sampled_from(["sequence", "token"]))
def test_agrees_with_a_plain_loop(seed, n, over):
    rng = np.random.default_rng(seed)
    loss, sequence = rng.normal(size=n), rng.integers(0, 5, size=n)
    weight = rng.integers(0, 3, size=n).astype(float)
    found = mean_loss(*map(torch.from_numpy, (loss, weight, sequence)), over)
    expected = naive(loss.tolist(), weight.tolist(), sequence.tolist(), over)
    assert found.item() == pytest.approx(expected, abs=1e-12)


def test_a_row_without_weight_counts_as_zero():
    loss, sequence = torch.tensor([2.0, 7.0]), torch.tensor([0, 1])
    assert mean_loss(loss, torch.tensor([1.0, 0.0]), sequence) == 1.0
    # Row 1 has no positions at all.
    assert mean_loss(loss, torch.ones(2), torch.tensor([0, 2])) == pytest.approx(3.0)


@pytest.mark.parametrize("over", ["sequence", "token"])
def test_a_dropped_position_cannot_spoil_the_mean(over):
    loss = torch.tensor([2.0, float("nan"), float("inf")], requires_grad=True)
    value = mean_loss(loss, torch.tensor([1.0, 0.0, 0.0]), torch.tensor([0, 0, 1]), over)
    value.backward()
    assert value == (1.0 if over == "sequence" else 2.0)
    assert (loss.grad[1:] == 0).all() and loss.grad[0] == value / 2


def test_weights_take_no_gradient():
    weight = torch.ones(2, requires_grad=True)
    loss = torch.ones(2, requires_grad=True)
    mean_loss(loss, weight, torch.tensor([0, 1])).backward()
    assert weight.grad is None


def test_nothing_to_learn_from_is_a_loss_of_zero():
    empty = torch.zeros(0)
    for over in ("sequence", "token"):
        assert mean_loss(empty, empty, empty.long(), over) == 0
        assert mean_loss(torch.ones(3), torch.zeros(3), torch.arange(3), over) == 0


def test_an_unknown_mean_and_unequal_shapes_are_refused():
    with pytest.raises(ValueError, match="'sequence' and 'token'"):
        mean_loss(torch.ones(2), torch.ones(2), torch.arange(2), "batch")
    with pytest.raises(ValueError, match="one shape"):
        mean_loss(torch.ones(2), torch.ones(3), torch.arange(2))


@pytest.mark.parametrize("over", ["sequence", "token"])
def test_the_number_of_terms_is_one_over_the_weight_of_a_token(over):
    length = torch.tensor([3, 1, 6])
    sequence = torch.arange(3).repeat_interleave(length)
    loss = torch.zeros(10, requires_grad=True)
    mean_loss(loss, torch.ones(10), sequence, over).backward()
    torch.testing.assert_close(1 / mean_loss_terms(length, over)[sequence], loss.grad)
