"""Logits that are not finite: an error with the problem, never a response."""

import copy
import math

import pytest
import torch

from geosd.problems.records import Problem
from geosd.sampling import transformers_sampler
from geosd.sampling.broken_logits import NonFiniteLogitsError, name_broken_logits
from geosd.sampling.sampler import SamplerPrompts, SamplingParams
from geosd.sampling.token_draws import NO_TOKEN, draw_tokens
from geosd.sampling.transformers_sampler import TransformersSampler

DRAWING = [SamplingParams(1.0, 1.0, 6), SamplingParams(0.6, 0.95, 6), SamplingParams(0.0, 1.0, 6)]
PROMPTS = [[3, 4, 5], [7, 8], [9, 10, 11, 12]]
BANNED = -math.inf


@pytest.mark.parametrize("sampling", DRAWING, ids=["all", "nucleus", "greedy"])
@pytest.mark.parametrize("vocabulary", [40, 700])  # 700: the nucleus is looked for in a prefix
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_row_without_a_distribution_has_no_token_and_the_others_have(sampling, vocabulary, dtype):
    generator = torch.Generator().manual_seed(0)
    logits_BV = torch.randn(6, vocabulary, generator=generator).to(dtype)
    sound_B = draw_tokens(logits_BV, torch.full((6,), 0.5, dtype=torch.float64), sampling)
    assert (sound_B >= 0).all()
    logits_BV[1, 7] = math.nan
    logits_BV[2, 0] = math.inf
    logits_BV[3] = BANNED
    logits_BV[4] = logits_BV[4].where(torch.arange(vocabulary) == 3, BANNED)
    ids_B = draw_tokens(logits_BV, torch.full((6,), 0.5, dtype=torch.float64), sampling)
    assert ids_B[1:4].tolist() == [NO_TOKEN] * 3
    assert ids_B[[0, 4, 5]].tolist() == [sound_B[0], 3, sound_B[5]]


@pytest.fixture(scope="module", params=["qwen3", "gemma2"])
def model(request, random_weights):
    return random_weights(request.param)


def broken_from(model, position):
    """The model, with logits of the second row that are NaN from a token of the response on."""
    broken, calls = copy.deepcopy(model), []
    take = broken.forward

    def forward(**inputs):
        output = take(**inputs)
        calls.append(inputs["input_ids"].shape)
        if calls[-1][0] > 1 and sum(rows > 1 for rows, _ in calls) >= position:
            output.logits[1, -1, 3] = math.nan
        return output

    broken.forward = forward
    return broken


@pytest.mark.parametrize("stride", [1, 8])
@pytest.mark.parametrize("position", [1, 3, 6])
def test_broken_logits_are_an_error_with_prompt_and_position(model, stride, position, monkeypatch):
    monkeypatch.setattr(transformers_sampler, "CPU_STRIDE", stride)
    sampler = TransformersSampler(broken_from(model, position), [1], pad_id=0)
    words = f"(?s)token {position} of a response to prompt 0 are not finite.*Hint: "
    with pytest.raises(FloatingPointError, match=words):  # prompt 0 is the second shortest
        sampler.sample(PROMPTS, SamplingParams(1.0, 1.0, 6), seed=1)


def test_what_comes_after_a_response_has_ended_is_nobodys_token(model):
    """A row goes on until enough have ended; what it computes then is thrown away."""
    sound = TransformersSampler(model, range(1, 61), pad_id=0)  # every token ends a response
    sampling = SamplingParams(1.0, 1.0, 6)
    expected = sound.sample(PROMPTS, sampling, seed=1)
    broken = TransformersSampler(broken_from(model, 2), range(1, 61), pad_id=0)
    assert broken.sample(PROMPTS, sampling, seed=1) == expected


def test_the_problem_is_that_of_the_place_over_all_batches(model):
    problems = [Problem(f"train-{i}", "id", "q", "1") for i in range(5)]
    sampler = TransformersSampler(broken_from(model, 1), [1], pad_id=0)
    alone = SamplerPrompts(PROMPTS[:1], 1)
    with (
        pytest.raises(NonFiniteLogitsError, match="problem train-2") as raised,
        name_broken_logits(problems),
    ):
        batches = [alone, alone, SamplerPrompts(PROMPTS, 2)]
        list(sampler.sample_chunks(batches, SamplingParams(1.0, 1.0, 6)))
    assert raised.value.place == 2
