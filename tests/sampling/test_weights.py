"""The weights that a live model sends to an engine."""

from unittest.mock import patch

import pytest
import torch
from cases import decoder
from torch import distributed
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import DTensor

from geosd.models.load_and_save import weights_as_saved
from geosd.sampling.weight_delivery import weight_delivery_parts


def model(tied=False):
    return decoder("Llama", tie_word_embeddings=tied)


def sent(weights, dtype=torch.float32, size=2**31):
    return list(weight_delivery_parts(weights, dtype, size))


def test_every_weight_goes_under_its_name_in_a_checkpoint(tmp_path):
    student = model()
    student.save_pretrained(tmp_path)
    from safetensors.torch import load_file

    kept = load_file(tmp_path / "model.safetensors")
    (arrived,) = sent(weights_as_saved(student))
    assert arrived.keys() == kept.keys()
    assert all(torch.equal(arrived[name], kept[name]) for name in kept)


def test_a_tied_head_goes_once_as_the_embedding():
    names = [name for name, _ in weights_as_saved(model(tied=True))]
    assert "model.embed_tokens.weight" in names and "lm_head.weight" not in names
    assert "lm_head.weight" in [name for name, _ in weights_as_saved(model())]


def test_parts_hold_little_and_together_everything():
    student = model()
    parts = sent(weights_as_saved(student), size=3000)
    assert len(parts) > 3
    largest = max(value.nbytes for _, value in weights_as_saved(student))
    assert all(sum(v.nbytes for v in part.values()) < 3000 + largest for part in parts)
    assert [name for part in parts for name in part] == [
        name for name, _ in weights_as_saved(student)
    ]


def test_what_is_sent_has_the_engines_type_and_no_longer_changes_with_the_model():
    student = model()
    (arrived,) = sent(weights_as_saved(student), torch.bfloat16)
    (same,) = sent(weights_as_saved(student))
    norm = student.model.norm.weight
    before = norm.detach().clone()
    with torch.no_grad():
        norm.mul_(2)
    assert arrived["model.norm.weight"].dtype == torch.bfloat16
    assert torch.equal(same["model.norm.weight"], before)
    assert not any(value.requires_grad for value in arrived.values())


@pytest.fixture
def mesh():
    store = distributed.HashStore()
    distributed.init_process_group("gloo", store=store, rank=0, world_size=1)
    yield init_device_mesh("cpu", (1,))
    distributed.destroy_process_group()


def test_a_sharded_model_sends_whole_tensors(mesh):
    expected = dict(weights_as_saved(model()))
    sharded = model()
    for layer in sharded.model.layers:
        fully_shard(layer, mesh=mesh)
    fully_shard(sharded, mesh=mesh)
    arrived = dict(weights_as_saved(sharded))
    assert arrived.keys() == expected.keys()
    for name, value in arrived.items():
        assert type(value) is torch.Tensor and torch.equal(value, expected[name])


def test_shards_are_cast_before_they_are_gathered_and_the_bits_are_those_of_the_whole(mesh):
    expected = {name: value.bfloat16() for name, value in weights_as_saved(model())}
    sharded = model()
    fully_shard(sharded, mesh=mesh)
    with patch.object(
        DTensor, "full_tensor", autospec=True, side_effect=DTensor.full_tensor
    ) as all_gather:
        arrived = dict(weights_as_saved(sharded, torch.bfloat16))
    assert {call.args[0].dtype for call in all_gather.call_args_list} == {torch.bfloat16}
    assert len(all_gather.call_args_list) == len(expected)
    assert all(torch.equal(arrived[name], expected[name]) for name in expected)
