"""The nucleus without a sort of the whole vocabulary: the same tokens."""

import pytest
import torch

from geosd.sampling import token_draws
from geosd.sampling.sampler import SamplingParams

NUCLEUS = SamplingParams(0.6, 0.95, 1)


@pytest.mark.parametrize("scale", [0.01, 1.0, 6.0])  # nuclei larger and smaller than the prefix
@pytest.mark.parametrize("ties", [False, True])
def test_the_prefix_draws_the_tokens_that_a_whole_sort_draws(monkeypatch, scale, ties):
    generator = torch.Generator().manual_seed(0)
    logits_BV = scale * torch.randn(64, 3000, generator=generator)
    if ties:
        logits_BV = (logits_BV / scale * 2).round() * scale / 2
    uniforms_B = torch.rand(64, generator=generator, dtype=torch.float64)
    short = token_draws.draw_tokens(logits_BV, uniforms_B, NUCLEUS)
    monkeypatch.setattr(token_draws, "PREFIX", 3000)
    assert torch.equal(short, token_draws.draw_tokens(logits_BV, uniforms_B, NUCLEUS))


def test_a_nucleus_that_fits_is_found_in_the_prefix_and_another_in_all():
    narrow = torch.tensor([[0.5, 0.3, 0.2] + [0.0] * 997])
    assert token_draws.likeliest_token_first(narrow, 0.95)[1].shape[1] == token_draws.PREFIX
    wide = torch.full((1, 1000), 1e-3)
    p_BV, ids_BV = token_draws.likeliest_token_first(wide, 0.95)
    assert p_BV.shape == (1, 1000) and ids_BV[0].tolist() == list(range(1000))
