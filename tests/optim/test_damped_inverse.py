"""Damped inverses against float64, where rounding is larger than the damping."""

import pytest
import torch

from geosd.optim.blocks import BlockFactors
from geosd.optim.damped_inverse import damped_inverse

SHIFT = 1e-3**0.5
EPSILON = torch.finfo(torch.bfloat16).eps


def covariance(size=48, largest=1600.0):
    """A covariance with one direction far larger than the others, as of outlier activations."""
    generator = torch.Generator().manual_seed(2)
    rows = torch.randn(4 * size, size, generator=generator, dtype=torch.float64)
    direction = torch.randn(size, generator=generator, dtype=torch.float64)
    direction *= (largest / direction.square().sum()) ** 0.5
    return rows.T @ rows / len(rows) * 0.01 + torch.outer(direction, direction)


def test_rounding_beyond_the_damping_gives_the_inverse_of_the_nearest_covariance():
    exact = covariance()
    rounded = exact.to(torch.bfloat16).double()
    assert torch.linalg.eigvalsh(rounded)[0] < -SHIFT  # so no Cholesky factor at any precision
    inverse, failed, singular = damped_inverse(rounded.float()[None], SHIFT, torch.bfloat16)
    assert (failed, singular) == (1, None)
    values, vectors = torch.linalg.eigh(rounded)
    nearest = (vectors * values.clamp_min(0)) @ vectors.T
    damped = torch.eye(len(exact)).double() * SHIFT
    expected = torch.linalg.inv(nearest + damped)
    torch.testing.assert_close(inverse[0].double(), expected, rtol=1e-4, atol=1e-4)
    assert (nearest - exact).norm() < (rounded - exact).norm()


def test_blocks_that_have_a_cholesky_factor_are_inverted_as_before():
    good = covariance(largest=1.0).float()
    bad = covariance().to(torch.bfloat16).float()
    inverse, failed, singular = damped_inverse(torch.stack([good, bad]), SHIFT, torch.bfloat16)
    alone, none, _ = damped_inverse(good[None], SHIFT, torch.bfloat16)
    assert (failed, none, singular) == (1, 0, None)
    torch.testing.assert_close(inverse[0], alone[0], rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("stored", [torch.float32, torch.bfloat16])
def test_a_block_that_rounding_does_not_explain_is_named(stored):
    good = covariance(largest=1.0).float()
    bound = 8 * len(good) ** 0.5 * torch.finfo(stored).eps
    for wrong in (
        good - 2 * max(bound, 1) * good.abs().max() * torch.eye(len(good)),
        good * torch.nan,
    ):
        stack = torch.stack([good, wrong, good])
        assert damped_inverse(stack, SHIFT, stored)[2] == 1


def test_the_bound_is_of_the_storage():
    """What bfloat16 explains, float32 does not."""
    rounded = covariance().to(torch.bfloat16).float()[None]
    assert damped_inverse(rounded, SHIFT, torch.bfloat16)[2] is None
    assert damped_inverse(rounded, SHIFT, torch.float32)[2] == 0


def test_averages_in_bfloat16_of_outlier_activations_have_inverses():
    generator = torch.Generator().manual_seed(0)
    direction = 40 * torch.nn.functional.normalize(torch.randn(64, generator=generator), dim=0)
    factors = BlockFactors({"A": 64}, 1, torch.bfloat16, {"A": torch.device("cpu")}, None)
    for _ in range(30):
        rows = 0.1 * torch.randn(256, 64, generator=generator) + direction
        factors.add("A", rows)
        factors.update(0.95, SHIFT)
    ((_, inverse),) = factors.inverse("A")
    assert inverse.isfinite().all() and inverse.abs().max() <= 1.01 / SHIFT
    ((_, average),) = factors.averages(0.95)
    assert torch.linalg.eigvalsh(average[0].double())[0] < 0  # rounding did make one negative
