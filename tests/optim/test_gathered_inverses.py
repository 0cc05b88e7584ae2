"""Inverses of the factors A from all ranks, and the rounding of TF32 in what they multiply."""

from unittest.mock import patch

import pytest
import torch
from cases import decoder
from torch import distributed

from geosd.optim import kfac as kfac_module
from geosd.optim.damped_inverse import solve_left, solve_right, tf32_inverse_products
from geosd.optim.kfac import KFAC
from geosd.optim.partition import BlockRange


@pytest.fixture
def group():
    store = distributed.HashStore()
    distributed.init_process_group("gloo", store=store, rank=0, world_size=1)
    yield distributed.group.WORLD
    distributed.destroy_process_group()


def preconditioned(group=None, layers=3):
    """Gradients of a small model after a step of K-FAC, and how often ranks added something up."""
    model = decoder(num_hidden_layers=layers)
    kfac = KFAC(model, blocks=4, group=group)
    ids = torch.randint(31, (2, 12), generator=torch.Generator().manual_seed(0))
    model(ids, labels=ids).loss.backward()
    with patch.object(distributed, "all_reduce", wraps=distributed.all_reduce) as all_reduce:
        kfac.step()
    gradients = {name: value.grad for name, value in model.named_parameters()}
    return gradients, [call.args[0].shape for call in all_reduce.call_args_list]


def test_inverses_of_all_layers_come_together_and_are_the_same_bits(group):
    alone, none = preconditioned()
    together, shapes = preconditioned(group)
    assert not none
    assert all(torch.equal(together[name], alone[name]) for name in alone)
    # Gradients that are whole on each rank need the whole inverse of each G, seven a layer. Of
    # the four A of a layer none comes by itself.
    _, of_six_layers = preconditioned(group, layers=6)
    assert len(of_six_layers) - len(shapes) == 3 * 7


def test_no_more_of_the_inverses_is_held_than_there_is_room_for(group, monkeypatch):
    whole, few = preconditioned(group)
    # Inputs of hidden 16 and of ffn 24 in four blocks: 4 * 4^2 and 4 * 6^2 elements.
    monkeypatch.setattr(kfac_module, "GATHERED", 4 * 4**2 + 4 * 6**2)
    parts, many = preconditioned(group)
    assert all(torch.equal(parts[name], whole[name]) for name in whole)
    assert len(many) > len(few)
    assert max(shape[0] for shape in many[3:] if len(shape) == 3) <= 12


def tf32(values):
    """float32 rounded to TF32's eleven bits, to nearest."""
    mantissa, exponent = torch.frexp(values)
    return torch.ldexp((mantissa * 2**11).round() / 2**11, exponent)


def inverses(blocks, size, draw):
    """Damped inverses of covariances of few and uneven inputs, as K-FAC has them."""
    spread = torch.logspace(1, -3, size)
    rows = torch.randn(blocks, 2 * size, size, generator=draw) * spread
    stack = rows.mT @ rows / (2 * size) + 0.0316 * torch.eye(size)
    return [(BlockRange(0, blocks, size), torch.cholesky_inverse(torch.linalg.cholesky(stack)))]


def test_tf32_changes_a_preconditioned_gradient_by_less_than_bf16s_rounding_of_it():
    """The operands of both products rounded, in float64 otherwise: a GPU's own sums are finer.

    docs/scaling.md states the figure.
    """
    draw = torch.Generator().manual_seed(0)
    grad = torch.randn(256, 384, generator=draw)
    left, right = inverses(4, 64, draw), inverses(4, 96, draw)

    def solved(rounding):
        def rounded(inverse):
            return [(place, rounding(blocks).double()) for place, blocks in inverse]

        first = solve_left(rounded(left), rounding(grad).double()).float()
        return solve_right(rounded(right), rounding(first).double())

    exact = solved(lambda values: values)
    error = ((solved(tf32) - exact).norm() / exact.norm()).item()
    assert error == pytest.approx(3.6e-4, rel=0.1)
    of_bf16 = ((exact.bfloat16().double() - exact).norm() / exact.norm()).item()
    assert error < of_bf16


def test_tf32_is_of_these_products_alone_and_of_no_cpu():
    settings = torch.backends.cuda.matmul
    before = settings.allow_tf32
    with tf32_inverse_products(torch.device("cpu")):
        assert settings.allow_tf32 == before
    with pytest.raises(ValueError, match="in between"), tf32_inverse_products(torch.device("cuda")):
        assert settings.allow_tf32
        raise ValueError("in between")
    assert settings.allow_tf32 == before
