"""A checkpoint's weights come back exactly, or the file is named as another model's."""

import pytest
import torch

from geosd.models.checkpoints import load_weights, save_weights
from geosd.models.tiny_architectures import build


def model(seed, name="mini-qwen3-xs"):
    return build(name, 22, 0, 1, seed=seed)


def test_weights_come_back_bit_for_bit_and_as_the_same_bytes(tmp_path):
    one, other = model(0), model(1)
    save_weights(one, tmp_path / "a")
    load_weights(other, tmp_path / "a")
    save_weights(other, tmp_path / "b")
    state = one.state_dict()
    assert all(torch.equal(value, state[name]) for name, value in other.state_dict().items())
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_a_tied_parameter_stays_tied(tmp_path):
    tied, other = (torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.Linear(3, 3)) for _ in "ab")
    for each in (tied, other):
        each[1].weight = each[0].weight
    save_weights(tied, tmp_path / "w")
    load_weights(other, tmp_path / "w")
    assert other[1].weight is other[0].weight
    assert torch.equal(other[1].weight, tied[0].weight)


def test_weights_of_another_architecture_are_refused(tmp_path):
    save_weights(torch.nn.Linear(2, 2), tmp_path / "w")
    with pytest.raises(ValueError, match="(?s)parameters are not those of the model.*Hint:"):
        load_weights(model(0), tmp_path / "w")
    with pytest.raises(FileNotFoundError, match="(?s)no such checkpoint.*training.snapshots"):
        load_weights(model(0), tmp_path / "absent")
