"""Muon's steps against Newton-Schulz in float64, and over two ranks against a process alone.

Run as a program, this file is what each of two ranks does.
"""

import copy
import os
import sys

import pytest
import torch
import torch.distributed as dist
from cases import decoder, launch
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard

from geosd.optim.dtensors import copy_full_into
from geosd.optim.muon import Muon
from geosd.optim.update import UpdateRule

IMPORTED = ("geosd.optim.update", "torch.distributed.fsdp")
RATE = 1e-2
ROUNDING = 0.03
"""Of an orthogonal matrix's norm: torch iterates in bfloat16, whose numbers have eight bits."""


def newton_schulz(gradient):
    """Five quintic iterations in float64, with Jordan's coefficients."""
    a, b, c = 3.4445, -4.7750, 2.0315
    x = gradient.double()
    x = x / x.norm()
    for _ in range(5):
        square = x @ x.T
        x = a * x + (b * square + c * square @ square) @ x
    return x


def expected_steps(gradients, rows, columns):
    """The changes of a matrix by Muon with Nesterov momentum .95, at AdamW's rate."""
    average, changes = 0.0, []
    for gradient in gradients:
        average = 0.95 * average + 0.05 * gradient.double()
        ahead = 0.95 * average + 0.05 * gradient.double()
        changes.append(-RATE * 0.2 * max(rows, columns) ** 0.5 * newton_schulz(ahead))
    return changes


class Block(nn.Module):
    """One layer."""

    def __init__(self, layer):
        super().__init__()
        self.up_proj = layer

    def forward(self, x):
        return self.up_proj(x).sin()


class Blocks(nn.Module):
    """Blocks, the elements of a list, one after the other."""

    def __init__(self, layers):
        super().__init__()
        self.blocks = nn.ModuleList(map(Block, layers))

    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return x


def blocks_of(*layers):
    return Blocks(layers)


@pytest.mark.parametrize("rows, columns", [(6, 10), (10, 6), (8, 8)])
def test_steps_are_those_of_newton_schulz_in_float64(rows, columns):
    model = blocks_of(nn.Linear(columns, rows, bias=False))
    (matrix,) = model.parameters()
    update = UpdateRule(model, rule="muon")
    generator = torch.Generator().manual_seed(0)
    gradients = [torch.randn(rows, columns, generator=generator) * 1e-3 for _ in range(3)]
    for gradient, expected in zip(gradients, expected_steps(gradients, rows, columns), strict=True):
        before = matrix.detach().double()
        matrix.grad = gradient.clone()
        update.step(RATE)
        error = (matrix.detach().double() - before - expected).norm() / expected.norm()
        assert error < ROUNDING


def test_a_step_has_the_singular_vectors_of_the_gradient_and_nearly_equal_values():
    """The first step of a matrix U S V^T is along U S' V^T, with S' near one whatever S is."""
    generator = torch.Generator().manual_seed(1)
    u, _ = torch.linalg.qr(torch.randn(6, 6, generator=generator, dtype=torch.float64))
    v, _ = torch.linalg.qr(torch.randn(9, 6, generator=generator, dtype=torch.float64))
    singular = torch.tensor([1.0, 0.7, 0.5, 0.3, 0.2, 0.1], dtype=torch.float64)
    model = blocks_of(nn.Linear(9, 6, bias=False))
    (matrix,) = model.parameters()
    with torch.no_grad():
        matrix.zero_()
    matrix.grad = (u * singular @ v.T).float()
    UpdateRule(model, rule="muon").step(RATE)
    change = u.T @ matrix.detach().double() @ v / (-RATE * 0.2 * 3)
    assert (change - change.diag().diag()).abs().max() < ROUNDING
    assert 0.6 < change.diag().min() and change.diag().max() < 1.25


def test_muon_takes_the_matrices_of_the_blocks_and_adamw_all_others():
    model = decoder("Qwen3", 0).float()
    update = UpdateRule(model, rule="muon")
    kfac = UpdateRule(copy.deepcopy(model), rule="kfac", kfac={"blocks": 2})
    names = {f"{name}.weight" for name in kfac.preconditioner.layers}
    assert set(update.muon.matrices) == names
    by_adam = {id(p) for group in update.adam.param_groups for p in group["params"]}
    others = {id(p) for name, p in model.named_parameters() if name not in names}
    assert by_adam == others


class Experts(nn.Module):
    """Two experts' weights in one tensor, as many families store them."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(2, 4, 4))
        self.router = nn.Linear(4, 2)


def test_weights_that_are_no_matrices_are_refused_by_name():
    with pytest.raises(
        ValueError, match=r"cannot take blocks\.\*\.up_proj(.|\n)*Hint: (.|\n)*adamw"
    ):
        Muon(blocks_of(Experts()))


def test_a_state_of_another_model_is_refused_by_name():
    muon = Muon(blocks_of(nn.Linear(3, 2, bias=False)))
    with pytest.raises(ValueError, match=r"blocks\.1\.up_proj\.weight(.|\n)*Hint"):
        muon.load_state_dict({"blocks.1.up_proj.weight": torch.zeros(2, 3)})


# --- two ranks ----------------------------------------------------------------------------------


def sharded_model(world, group, rows=(8, 5)):
    """Two blocks; the rows of one of them do not divide by two ranks."""
    torch.manual_seed(0)
    first, last = rows
    model = blocks_of(nn.Linear(6, first), nn.Linear(first, last))
    if group is not None:
        mesh = init_device_mesh("cpu", (world,))
        for block in model.blocks:
            fully_shard(block, mesh=mesh)
        fully_shard(model, mesh=mesh)
    return model


def full_weights(model):
    return [getattr(p, "full_tensor", lambda p=p: p)().detach().clone() for p in model.parameters()]


def steps(model, update):
    """Three steps by gradients without small singular values; the weights, and the last's size.

    In a direction with a small singular value Newton-Schulz magnifies what bfloat16 has rounded,
    and the order of a sum decides it.
    """
    generator = torch.Generator().manual_seed(0)
    for _ in range(3):
        update.zero_grad()
        for parameter in model.parameters():
            parameter.grad = torch.zeros_like(parameter)
            copy_full_into(torch.randn(parameter.shape, generator=generator), parameter.grad)
        update.step(RATE)
    return full_weights(model), update.relative_step()


def assert_near(found, expected, start):
    """Weights that moved alike, up to the rounding of bfloat16, and relative steps as near."""
    pairs = zip(found[0], expected[0], start, strict=True)
    apart = [((a - b).norm() / (b - before).norm()).item() for a, b, before in pairs]
    print("apart, of what each weight moved:", *(f"{each:.4f}" for each in apart))
    assert max(apart) < ROUNDING
    assert found[1] == pytest.approx(expected[1], rel=ROUNDING)


def compare(rank, world, store):
    """Ranks against a process alone, and, from the state that the ranks leave, once more."""
    dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=world)
    try:
        group = dist.group.WORLD
        model = sharded_model(world, group)
        update = UpdateRule(model, rule="muon")
        sharded = steps(model, update)
        states = [copy.deepcopy(update.state_dict())]
        dist.broadcast_object_list(states)
        back = sharded_model(world, group)
        for parameter, value in zip(back.parameters(), sharded[0], strict=True):
            copy_full_into(value, parameter.data)
        again = UpdateRule(back, rule="muon")
        again.load_state_dict(copy.deepcopy(states[0]))
        resumed = steps(back, again)
        went_on = steps(model, update)
        # What cannot be stepped in its shards is refused on each rank, before any step.
        if world > 1:
            with pytest.raises(
                ValueError, match=r"1\.up_proj\.weight, 1 rows over 2 ranks(.|\n)*Hint"
            ):
                UpdateRule(sharded_model(world, group, rows=(8, 1)), rule="muon")
    finally:
        dist.destroy_process_group()
    assert all(map(torch.equal, resumed[0], went_on[0])) and resumed[1] == went_on[1]
    start = full_weights(sharded_model(1, None))
    plain = sharded_model(1, None)
    alone = UpdateRule(plain, rule="muon")
    assert_near(sharded, steps(plain, alone), start)
    # The state that ranks leave is the one that a process alone goes on from.
    assert states[0]["muon"].keys() == alone.state_dict()["muon"].keys()
    other = sharded_model(1, None)
    with torch.no_grad():
        for parameter, value in zip(other.parameters(), sharded[0], strict=True):
            parameter.copy_(value)
    from_ranks = UpdateRule(other, rule="muon")
    from_ranks.load_state_dict(copy.deepcopy(states[0]))
    assert_near(resumed, steps(other, from_ranks), sharded[0])


def test_shards_that_were_orthogonalised_each_alone_would_not_pass_as_near():
    gradient = torch.randn(8, 6, generator=torch.Generator().manual_seed(0))
    whole = newton_schulz(gradient)
    halves = torch.cat([newton_schulz(half) for half in gradient.chunk(2)])
    assert (halves - whole).norm() > 10 * ROUNDING * whole.norm()


def test_one_rank_with_sharded_weights_takes_the_steps_of_a_plain_process(tmp_path):
    compare(0, 1, tmp_path / "store")


@pytest.mark.slow
def test_two_ranks_with_half_the_rows_each_take_the_steps_of_one(tmp_path):
    launch(__file__, tmp_path / "store", imported=IMPORTED)


if __name__ == "__main__":
    compare(int(os.environ["RANK"]), 2, sys.argv[1])
