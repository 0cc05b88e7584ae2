"""A sharded model equals the unsharded one: its logits, its copies and its saved weights."""

import copy

import pytest
import torch
import torch.distributed as dist
from cases import decoder

from geosd.training.fsdp import (
    full_model,
    full_state_dict,
    load_full_state_dict,
    reshard,
    shard,
    summon_full_params,
    with_root_gathered,
)
from geosd.training.packing import pack
from geosd.training.policy import copy_parameters, frozen_copy, policy_response_logits

CPU = torch.device("cpu")


@pytest.fixture(scope="module")
def group():
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    yield dist.group.WORLD
    dist.destroy_process_group()


@pytest.fixture(params=[False, True], ids=["untied", "tied"])
def unsharded(request):
    return decoder(tie_word_embeddings=request.param).eval()


@pytest.fixture
def packed():
    return pack([[1, 2, 3], [4]], [[5, 6], [7, 8, 9]], 0)


@torch.no_grad()
def logits(model, packed):
    seen = policy_response_logits(model, packed)
    found = with_root_gathered(model, lambda root: seen.logits(slice(None)))
    reshard(model)
    return found


def test_it_computes_what_the_unsharded_model_does(unsharded, packed, group):
    expected = logits(unsharded, packed)
    sharded = shard(copy.deepcopy(unsharded), group, CPU, torch.float32)
    torch.testing.assert_close(logits(sharded, packed), expected, rtol=1e-6, atol=1e-7)


def test_a_copy_is_independent_until_it_is_refreshed(unsharded, packed, group):
    student = shard(copy.deepcopy(unsharded), group, CPU, torch.float32)
    anchor = frozen_copy(student)
    expected = logits(unsharded, packed)
    with torch.no_grad():
        for parameter in student.parameters():
            parameter.mul_(1.5)
    torch.testing.assert_close(logits(anchor, packed), expected, rtol=1e-6, atol=1e-7)
    copy_parameters(anchor, student)
    moved = logits(student, packed)
    assert not torch.allclose(moved, expected, rtol=1e-2)
    torch.testing.assert_close(logits(anchor, packed), moved, rtol=1e-6, atol=1e-7)
    assert not any(parameter.requires_grad for parameter in anchor.parameters())


def test_a_bfloat16_copy_computes_exactly_what_a_student_computing_in_bfloat16_computes(
    unsharded, packed, group
):
    student = shard(copy.deepcopy(unsharded), group, CPU, torch.bfloat16)
    anchor = frozen_copy(student, torch.bfloat16, torch.bfloat16)
    student_logits = logits(student, packed)
    assert student_logits.dtype == torch.float32
    assert torch.equal(logits(anchor, packed), student_logits)


def test_what_is_written_of_it_is_the_unsharded_model_and_can_be_read_back(
    unsharded, packed, group
):
    student = shard(copy.deepcopy(unsharded), group, CPU, torch.float32)
    written = full_model(student)
    assert type(written) is type(unsharded)
    assert written.state_dict().keys() == unsharded.state_dict().keys()
    for name, value in unsharded.state_dict().items():
        assert torch.equal(written.state_dict()[name], value)
    tied = written.lm_head.weight is written.model.embed_tokens.weight
    assert tied == unsharded.config.tie_word_embeddings
    weights = full_state_dict(student)
    weights = {name: value + 1 for name, value in weights.items()}
    load_full_state_dict(student, weights)
    for name, value in full_state_dict(student).items():
        assert torch.equal(value, weights[name])


def test_generating_from_the_whole_model_reads_what_the_last_update_wrote(unsharded, group):
    student = shard(copy.deepcopy(unsharded), group, CPU, torch.float32)
    prompt = torch.tensor([[1, 2, 3]])

    def greedy(model):
        return model.generate(prompt, do_sample=False, max_new_tokens=8, synced_gpus=False)

    for _ in range(2):
        with summon_full_params(student):
            assert torch.equal(greedy(student), greedy(unsharded))
        with torch.no_grad():
            for sharded_parameter, parameter in zip(
                student.parameters(), unsharded.parameters(), strict=True
            ):
                sharded_parameter.mul_(-1)
                parameter.mul_(-1)
