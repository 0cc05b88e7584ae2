"""Draws against exact probabilities, computed in float64 without any sampler."""

import pytest
import torch
from scipy.stats import chisquare

from geosd.sampling.sampler import SamplingParams
from geosd.sampling.token_draws import draw_tokens, first_token_beyond, request_uniforms

N = 40_000


@pytest.fixture(scope="module")
def logits():
    return torch.randn(24, generator=torch.Generator().manual_seed(4)) / 3


def exact(logits, temperature, top_p):
    p = (logits.double() / temperature).softmax(-1)
    kept, mass = torch.zeros_like(p), 0.0
    for token in p.argsort(descending=True).tolist():
        kept[token] = p[token]
        mass += p[token].item()
        if mass >= top_p:
            break
    return kept / kept.sum()


@pytest.mark.parametrize("temperature", [0.6, 1.0, 1.7])
@pytest.mark.parametrize("top_p", [0.5, 0.95, 1.0])
def test_draws_have_the_exact_probabilities(logits, temperature, top_p):
    p = exact(logits, temperature, top_p)
    uniforms = request_uniforms(7, range(N), 1)[0]
    drawn = draw_tokens(logits.expand(N, -1), uniforms, SamplingParams(temperature, top_p, 1))
    counts = drawn.bincount(minlength=len(p))
    assert counts[p == 0].sum() == 0
    often = p * N > 5
    expected = p[often] / p[often].sum() * counts[often].sum()
    assert often.sum() > 3
    assert chisquare(counts[often], expected).pvalue > 1e-4


def test_the_nucleus_of_a_single_token_is_the_likeliest(logits):
    drawn = draw_tokens(
        logits.expand(50, -1), torch.linspace(0, 0.999, 50).double(), SamplingParams(1.0, 1e-9, 1)
    )
    assert set(drawn.tolist()) == {logits.argmax().item()}


def test_a_token_without_mass_is_never_drawn_at_either_end():
    mass = torch.tensor([[0.0, 0.0, 0.4, 0.4, 1.0, 1.0]], dtype=torch.float64)
    ends = torch.tensor([0.0, 0.4, 1 - 2**-53], dtype=torch.float64)
    assert first_token_beyond(mass.expand(3, -1), ends).tolist() == [2, 4, 4]


def test_a_requests_numbers_depend_on_seed_and_place_alone():
    numbers = request_uniforms(3, [5, 0, 9], 40)
    assert torch.equal(numbers[:, 1:2], request_uniforms(3, [0], 40))
    assert torch.equal(numbers[:11, 2:], request_uniforms(3, [9], 11))
    assert not torch.equal(numbers[:, :1], request_uniforms(4, [5], 40))
    assert 0 <= numbers.min() and numbers.max() < 1


def test_temperature_zero_reads_no_number(logits):
    nan = torch.full((2,), torch.nan, dtype=torch.float64)
    drawn = draw_tokens(logits.expand(2, -1), nan, SamplingParams(0.0, 0.5, 1))
    assert drawn.tolist() == [logits.argmax().item()] * 2
