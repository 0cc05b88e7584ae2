"""Divergences take logits and log-probabilities alike."""

from functools import partial

import pytest
import torch

from geosd import geometry

DIVERGENCES = {
    "overlap": geometry.overlap,
    "hellinger": geometry.hellinger,
    "fisher_rao": geometry.fisher_rao,
    "fisher_rao_squared": geometry.fisher_rao_squared,
    "forward_kl": geometry.forward_kl,
    "reverse_kl": geometry.reverse_kl,
    "jsd": geometry.jsd,
    "skew_kl": geometry.skew_kl,
    "skew_kl_reverse": partial(geometry.skew_kl, direction="reverse"),
    "alpha_divergence": partial(geometry.alpha_divergence, alpha=0.3),
}


@pytest.mark.parametrize("name", DIVERGENCES)
def test_unnormalised_input_gives_the_divergence_of_the_distributions(name):
    torch.manual_seed(0)
    divergence = DIVERGENCES[name]
    logits_p, logits_q = torch.randn(2, 3, 5, 11, dtype=torch.float64)
    shift_p, shift_q = torch.randn(2, 3, 5, 1, dtype=torch.float64) * 10
    expected = divergence(logits_p.log_softmax(-1), logits_q.log_softmax(-1))
    assert expected.shape == (3, 5)
    torch.testing.assert_close(divergence(logits_p + shift_p, logits_q + shift_q), expected)
