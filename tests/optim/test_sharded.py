"""Ranks under FSDP2 against one process that sees all rows.

Run as a program, this file is what each of two ranks does.
"""

import copy
import os
import sys

import pytest
import torch
import torch.distributed as dist
from cases import launch
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard

from geosd.optim.dtensors import copy_full_into
from geosd.optim.update import UpdateRule

IMPORTED = ("geosd.optim.update", "torch.distributed.fsdp")


def model_and_update(world, group, inner, blocks):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(6, 10), nn.Tanh(), nn.Linear(10, 5)).double()
    if group is not None:
        mesh = init_device_mesh("cpu", (world,))
        for layer in (model[0], model[2]):
            fully_shard(layer, mesh=mesh)
        fully_shard(model, mesh=mesh)
    kfac = dict(
        blocks=blocks,
        subsample=1.0,
        storage="float64",
        group=group,
        select=lambda name, module: True,
    )
    return model, UpdateRule(model, rule="kfac", inner=inner, kfac=kfac)


def full_state_dict(model):
    return [getattr(p, "full_tensor", lambda p=p: p)().detach().clone() for p in model.parameters()]


def elements(update):
    return sum(stack.numel() for stack in update.preconditioner.factors._average.values())


def steps(world, rank, group, inner, blocks, model=None, update=None):
    """Three steps on this rank's rows; the weights, the relative step, the spectrum, the state."""
    if model is None:
        model, update = model_and_update(world, group, inner, blocks)
    x = torch.randn(8, 6, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    own_rows = x.chunk(world)[rank]
    for _ in range(3):
        update.zero_grad()
        with update.observe(loss_terms=len(own_rows)):
            model(own_rows).sin().sum(-1).mean().backward()
        update.step(0.01)
    return full_state_dict(model), update.relative_step(), update.spectrum(), update


def compare(rank, world, inner, blocks, store):
    """Ranks against a process alone, and, from the state that the ranks leave, once more."""
    dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=world)
    try:
        *sharded, update = steps(world, rank, dist.group.WORLD, inner, blocks)
        state = copy.deepcopy(update.state_dict())
        owned = torch.tensor(elements(update))
        assert 0 < owned < elements(steps(1, 0, None, inner, blocks)[-1]) or world == 1
        dist.all_reduce(owned)
        back, again = model_and_update(world, dist.group.WORLD, inner, blocks)
        states = [copy.deepcopy(state)]
        dist.broadcast_object_list(states)
        again.load_state_dict(states[0])
        for parameter, value in zip(back.parameters(), sharded[0], strict=True):
            copy_full_into(value, parameter.data)
        *resumed, _ = steps(world, rank, dist.group.WORLD, inner, blocks, back, again)
    finally:
        dist.destroy_process_group()
    *alone, update = steps(1, 0, None, inner, blocks)
    torch.testing.assert_close(sharded, alone, rtol=1e-9, atol=1e-12)
    assert owned == elements(update)
    if rank == 0:  # the state that ranks leave is the one that a process alone goes on from
        model, other = model_and_update(1, None, inner, blocks)
        other.load_state_dict(state)
        with torch.no_grad():
            for parameter, value in zip(model.parameters(), sharded[0], strict=True):
                parameter.copy_(value)
        *alone, _ = steps(1, 0, None, inner, blocks, model, other)
        torch.testing.assert_close(resumed, alone, rtol=1e-9, atol=1e-12)


CASES = [(inner, blocks) for inner in ("adamw", "plain") for blocks in (2, 3)]
"""Two ranks hold whole blocks where there are two, and each a part of one where there are three."""


@pytest.mark.parametrize("inner, blocks", CASES)
def test_one_rank_with_sharded_weights_takes_the_steps_of_a_plain_process(inner, blocks, tmp_path):
    compare(0, 1, inner, blocks, tmp_path / "store")


@pytest.mark.slow
def test_two_ranks_with_half_the_rows_each_take_the_steps_of_one(tmp_path):
    launch(__file__, tmp_path / "store", imported=IMPORTED)


if __name__ == "__main__":
    for inner, blocks in CASES:
        compare(int(os.environ["RANK"]), 2, inner, blocks, f"{sys.argv[1]}{inner}{blocks}")
