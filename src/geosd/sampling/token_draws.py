"""One token of each row from its logits, by a random number that belongs to the row alone.

B = rows, R = most tokens of a response, V = vocabulary.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from geosd.sampling.sampler import SamplingParams
from geosd.seeds import seed_of

PREFIX = 256
"""Likeliest tokens among which a nucleus is looked for before all of the vocabulary is sorted."""
NO_TOKEN = -1
"""The token that is drawn where logits are not finite."""


def request_uniforms(seed: int, requests: Sequence[int], tokens: int) -> Tensor:
    """Uniform numbers [R, B] in [0, 1) for R tokens of each request, float64 on the CPU.

    `requests` are places in the call, whose seed is `seed`. Each has a generator of its own, so its
    numbers are the same whatever else is sampled.
    """
    uniforms_RB = torch.empty(tokens, len(requests), dtype=torch.float64)
    generator = torch.Generator()
    for row, request in enumerate(requests):
        generator.manual_seed(seed_of(seed, "request", request))
        uniforms_RB[:, row] = torch.rand(tokens, generator=generator, dtype=torch.float64)
    return uniforms_RB


def draw_tokens(logits_BV: Tensor, uniforms_B: Tensor, sampling: SamplingParams) -> Tensor:
    """The token of each row at which the cumulative distribution passes the row's number.

    The temperature divides the logits before the nucleus is cut; at temperature 0 the numbers, in
    [0, 1), are not read.

    Returns:
        Token ids [B]; `NO_TOKEN` in a row whose logits are no distribution: one is NaN or +inf, or
        all are -inf. A logit of -inf is a token that is never drawn.
    """
    if sampling.temperature == 0:
        ids_B = logits_BV.argmax(-1)  # of a NaN, where there is one
        likeliest_B = logits_BV.gather(-1, ids_B[:, None])[:, 0]
        return ids_B.where(likeliest_B.abs() < float("inf"), NO_TOKEN)
    wide = torch.promote_types(logits_BV.dtype, torch.float32)
    p_BV = (logits_BV.to(wide) / sampling.temperature).softmax(-1)
    if sampling.top_p >= 1:
        return first_token_beyond(p_BV.cumsum(-1, dtype=torch.float64), uniforms_B)
    p_BV, ids_BV = likeliest_token_first(p_BV, sampling.top_p)
    mass_BV = p_BV.cumsum(-1, dtype=torch.float64)
    # A token belongs to the nucleus if those before it have less than top_p; the first always does.
    outside_BV = (mass_BV - p_BV >= sampling.top_p).index_fill_(
        -1, torch.zeros(1, dtype=torch.long, device=p_BV.device), False
    )
    nucleus_BV = p_BV.masked_fill(outside_BV, 0.0).cumsum(-1, dtype=torch.float64)
    places_B = first_token_beyond(nucleus_BV, uniforms_B)
    ids_B = ids_BV.gather(-1, places_B.clamp(min=0)[:, None])[:, 0]
    return ids_B.where(places_B >= 0, NO_TOKEN)


def likeliest_token_first(p_BV: Tensor, top_p: float) -> tuple[Tensor, Tensor]:
    """Probabilities in descending order and their tokens, ties by token, as many as nuclei need.

    They are [B, K], or [B, V] where some nucleus of mass `top_p` is larger than `PREFIX`.
    """
    if p_BV.shape[1] > PREFIX:
        p_BK, ids_BK = p_BV.topk(PREFIX)
        ids_BK, order_BK = ids_BK.sort(-1)
        p_BK, again_BK = p_BK.gather(-1, order_BK).sort(dim=-1, descending=True, stable=True)
        # Others of the last one's probability may be missing, so no such token may be needed.
        complete_BK = p_BK.masked_fill(p_BK == p_BK[:, -1:], 0.0)
        if bool((complete_BK.sum(-1, dtype=torch.float64) > top_p + 1e-9).all()):
            return p_BK, ids_BK.gather(-1, again_BK)
    return p_BV.sort(dim=-1, descending=True, stable=True)


def first_token_beyond(mass_BV: Tensor, uniforms_B: Tensor) -> Tensor:
    """First place of each row where cumulative mass exceeds the row's share of the whole [B].

    A place without mass is never taken. It is `NO_TOKEN` in a row whose mass is NaN: one logit that
    is not finite makes all of a softmax NaN.
    """
    whole_B = mass_BV[:, -1]
    wanted_B1 = (uniforms_B * whole_B)[:, None]
    places_B = torch.searchsorted(mass_BV.contiguous(), wanted_B1, right=True)[:, 0]
    return places_B.clamp_(max=mass_BV.shape[1] - 1).masked_fill_(whole_B.isnan(), NO_TOKEN)
