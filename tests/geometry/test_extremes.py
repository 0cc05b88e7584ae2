"""Values and gradients are finite wherever a language model may end up, in every precision."""

import math

import pytest
import torch

from geosd import geometry as g

OFF = -math.inf
DIVERGENCES = {
    "overlap": g.overlap,
    "hellinger": g.hellinger,
    "fisher_rao": g.fisher_rao,
    "fisher_rao_squared": g.fisher_rao_squared,
    "forward_kl": g.forward_kl,
    "reverse_kl": g.reverse_kl,
    "jsd": g.jsd,
    "jsd .01": lambda p, q: g.jsd(p, q, 0.01),
    "jsd .99": lambda p, q: g.jsd(p, q, 0.99),
    "skew": g.skew_kl,
    "skew reverse": lambda p, q: g.skew_kl(p, q, 0.1, "reverse"),
    **{
        f"alpha {a}": lambda p, q, a=a: g.alpha_divergence(p, q, a)
        for a in (-1, -0.999, -0.5, 0, 0.5, 0.999, 1)
    },
}
# Logits of student and teacher.
PAIRS = {
    "uniform, equal": ([0, 0, 0, 0], [0, 0, 0, 0]),
    "equal": ([1, -2, 0.5, 3], [1, -2, 0.5, 3]),
    "equal with the same token off": ([1, 2, OFF, 3], [1, 2, OFF, 3]),
    "a hair apart": ([0, 1e-3, 0, 0], [0, 0, 0, 1e-3]),
    "disjoint": ([0, 0, OFF, OFF], [OFF, OFF, 0, 0]),
    "different tokens off": ([0, 1, OFF, 2], [0, OFF, 1, 2]),
    "student one-hot": ([0, OFF, OFF, OFF], [1, 2, 3, 4]),
    "teacher one-hot": ([1, 2, 3, 4], [0, OFF, OFF, OFF]),
    "the same one-hot": ([0, OFF, OFF, OFF], [0, OFF, OFF, OFF]),
    "different one-hots": ([0, OFF, OFF, OFF], [OFF, OFF, OFF, 0]),
    "logits a thousand apart": ([1000, 0, -1000, 3], [-1000, 0, 1000, 3]),
    "logits sixty apart": ([60, 0, -60, OFF], [-60, 0, 60, OFF]),
}
AGREEING = ("uniform, equal", "equal", "equal with the same token off", "the same one-hot")
HALF = (torch.bfloat16, torch.float16)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("name", DIVERGENCES)
def test_value_and_gradient_are_finite(name, dtype):
    """All pairs in one call, a row each."""
    logits = torch.tensor(list(PAIRS.values()), dtype=dtype)
    z_p, z_q = (logits[:, side].clone().requires_grad_() for side in (0, 1))
    values = DIVERGENCES[name](z_p.log_softmax(-1), z_q.log_softmax(-1))
    values.sum().backward()
    for pair, value, *gradients in zip(PAIRS, values, z_p.grad, z_q.grad, strict=True):
        assert value.isfinite(), pair
        assert all(gradient.isfinite().all() for gradient in gradients), pair
        if pair in AGREEING and name != "overlap":
            assert abs(value.item()) <= (1e-2 if dtype in HALF else 1e-6), pair


@pytest.mark.parametrize("name", DIVERGENCES)
def test_a_pair_alone_has_the_value_that_it_has_among_others(name):
    pairs = torch.tensor(list(PAIRS.values()), dtype=torch.float64).log_softmax(-1)
    together = DIVERGENCES[name](pairs[:, 0], pairs[:, 1])
    alone = torch.stack([DIVERGENCES[name](log_p, log_q) for log_p, log_q in pairs])
    torch.testing.assert_close(alone, together, rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("pair", PAIRS)
def test_entropy_is_finite(pair):
    z = torch.tensor(PAIRS[pair][0], dtype=torch.float32, requires_grad=True)
    value = g.entropy(z.log_softmax(-1))
    value.backward()
    assert value.isfinite() and z.grad.isfinite().all()


@pytest.mark.parametrize("name", DIVERGENCES)
def test_half_precision_is_computed_in_single_and_double_stays_double(name):
    generator = torch.Generator().manual_seed(5)
    log_p, log_q = torch.randn(2, 6, 50, generator=generator).log_softmax(-1).bfloat16()
    half = DIVERGENCES[name](log_p, log_q)
    assert half.dtype == torch.float32
    assert torch.equal(half, DIVERGENCES[name](log_p.float(), log_q.float()))
    assert torch.equal(half, DIVERGENCES[name](log_p.float(), log_q))
    assert DIVERGENCES[name](log_p.double(), log_q).dtype == torch.float64


@pytest.mark.parametrize("name", DIVERGENCES)
def test_slots_that_are_off_for_all_change_nothing(name):
    generator = torch.Generator().manual_seed(6)
    z = torch.randn(2, 6, 10, dtype=torch.float64, generator=generator)
    padded = torch.cat([z, torch.full((2, 6, 4), OFF, dtype=torch.float64)], -1)
    results = []
    for logits in (z, padded):
        logits = logits.clone().requires_grad_()
        value = DIVERGENCES[name](*logits.log_softmax(-1))
        value.sum().backward()
        results.append((value.detach(), logits.grad[..., :10]))
        assert (logits.grad[..., 10:] == 0).all()
    torch.testing.assert_close(*results, rtol=1e-12, atol=1e-15)
