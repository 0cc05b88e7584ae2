"""Ranks under FSDP2 against one process that sees all rows."""

import subprocess
import sys

import pytest
import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard

from geosd.optim.update import build_update


def steps(world, rank, group, inner):
    """Three steps on this rank's rows; the weights, the relative step and the spectrum."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(6, 10), nn.Tanh(), nn.Linear(10, 5)).double()
    x = torch.randn(8, 6, dtype=torch.float64)
    if group is not None:
        mesh = init_device_mesh("cpu", (world,))
        for layer in (model[0], model[2]):
            fully_shard(layer, mesh=mesh)
        fully_shard(model, mesh=mesh)
    kfac = dict(
        blocks=3,
        subsample=1.0,
        storage="float64",
        group=group,
        select=lambda name, module: True,
    )
    update = build_update(model, rule="kfac", inner=inner, lr=0.01, kfac=kfac)
    mine = x.chunk(world)[rank]
    for _ in range(3):
        update.zero_grad()
        with update.observe(loss_terms=len(mine)):
            model(mine).sin().sum(-1).mean().backward()
        update.step()
    weights = [getattr(p, "full_tensor", lambda p=p: p)().detach() for p in model.parameters()]
    return weights, update.relative_step(), update.spectrum()


def compare(rank, world, inner, store):
    dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=world)
    try:
        sharded = steps(world, rank, dist.group.WORLD, inner)
    finally:
        dist.destroy_process_group()
    alone = steps(1, 0, None, inner)
    torch.testing.assert_close(sharded, alone, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("inner", ["adamw", "plain"])
def test_one_rank_with_sharded_weights_takes_the_steps_of_a_plain_process(inner, tmp_path):
    compare(0, 1, inner, tmp_path / "store")


@pytest.mark.slow
def test_two_ranks_with_half_the_rows_each_take_the_steps_of_one(tmp_path):
    code = (
        "import runpy, sys; compare = runpy.run_path(sys.argv[1])['compare'];"
        "[compare(int(sys.argv[2]), 2, inner, sys.argv[3] + inner) for inner in ('adamw', 'plain')]"
    )
    command = [sys.executable, "-c", code, __file__]
    ranks = [subprocess.Popen([*command, str(rank), str(tmp_path / "store")]) for rank in (0, 1)]
    try:
        assert [rank.wait(timeout=120) for rank in ranks] == [0, 0]
    finally:
        for rank in ranks:
            rank.kill()
