"""Sampling against the model's own distribution, computed without any sampler."""

import copy
import random
from collections import Counter

import pytest
import torch
from scipy.stats import chisquare

from geosd.models.tiny_models import build_tiny_model
from geosd.problems.miniature import build_miniature_tokenizer
from geosd.problems.search.corpora import VOCABULARY
from geosd.sampling import transformers_sampler
from geosd.sampling.sampler import SamplingParams
from geosd.sampling.transformers_sampler import TransformersSampler

TOKENIZER = build_miniature_tokenizer(VOCABULARY)
END, PAD = TOKENIZER.eos_token_id, TOKENIZER.pad_token_id
PROMPT = TOKENIZER("Q: * 7 + 8 = 3 S:").input_ids
OTHERS = [TOKENIZER(f"Q: {i} + {i} * 2 - 1 S:").input_ids[: 4 + i] for i in range(5)]


@pytest.fixture(params=["mini-qwen3-xs", "mini-olmo3", "mini-llama"], scope="module")
def model(request):
    model = build_tiny_model(request.param, len(TOKENIZER), PAD, END, seed=3).eval()
    with torch.no_grad():
        model.lm_head.weight.mul_(8)  # a random head is almost uniform; give it preferences
    return model


def sampler(model, rows=256):
    return TransformersSampler(model, [END], PAD, rows=rows)


@torch.no_grad()
def next_token(model, ids, temperature=1.0):
    return (model(torch.tensor([ids])).logits[0, -1] / temperature).softmax(-1)


def test_tokens_are_drawn_from_the_models_own_distribution(model):
    n = 4000
    expected = next_token(model, PROMPT, temperature=1.3).double() * n
    drawn = sampler(model, rows=n).sample([PROMPT] * n, SamplingParams(1.3, 1.0, 1), seed=0)
    counts = Counter(completion.ids[0] for completion in drawn)
    often = [token for token in range(len(expected)) if expected[token] > 5]
    observed = [counts[token] for token in often]
    expected_counts = expected[often] * sum(observed) / expected[often].sum()
    assert len(often) > 10
    assert chisquare(observed, expected_counts.tolist()).pvalue > 1e-4


def test_the_nucleus_keeps_the_smallest_set_with_that_mass(model):
    p = next_token(model, PROMPT)
    order = p.argsort(descending=True)
    nucleus, mass = set(), 0.0
    for token in order.tolist():
        nucleus.add(token)
        mass += p[token].item()
        if mass >= 0.6:
            break
    drawn = sampler(model).sample([PROMPT] * 600, SamplingParams(1.0, 0.6, 1), seed=1)
    assert {completion.ids[0] for completion in drawn} == nucleus


def test_cold_sampling_is_greedy_whatever_shares_the_batch(model):
    prompts = [PROMPT, *OTHERS]
    together = sampler(model).sample(prompts, SamplingParams(1e-4, 1.0, 10), seed=0)
    for prompt, completion in zip(prompts, together, strict=True):
        ids = list(prompt)
        for token in completion.ids:
            assert token == next_token(model, ids).argmax().item()
            ids.append(token)


def test_temperature_zero_takes_the_likeliest_token(model):
    prompts = [PROMPT, *OTHERS]
    greedy = sampler(model).sample(prompts, SamplingParams(0.0, 1.0, 10), seed=0)
    assert greedy == sampler(model).sample(prompts, SamplingParams(0.0, 0.5, 10), seed=1)
    for prompt, completion in zip(prompts, greedy, strict=True):
        ids = list(prompt)
        for token in completion.ids:
            assert token == next_token(model, ids).argmax().item()
            ids.append(token)


def test_the_same_seed_gives_the_same_tokens_and_another_gives_others(model):
    prompts = [PROMPT] * 20 + OTHERS
    sampling = SamplingParams(1.0, 0.95, 12)
    first = sampler(model).sample(prompts, sampling, seed=5)
    torch.rand(7)  # what others draw must not matter
    again = sampler(model).sample(prompts, sampling, seed=5)
    assert first == again
    assert first != sampler(model).sample(prompts, sampling, seed=6)


def test_a_prompt_and_its_cap_beyond_the_context_are_refused_before_the_first_token(model):
    context = model.config.max_position_embeddings
    drawing, fits = sampler(model), SamplingParams(1.0, 1.0, 4)
    assert drawing.sample([PROMPT, [5] * (context - 4)], fits, seed=0)
    words = rf"{context + 1} tokens, {context - 3} of a prompt(.|\n)*{context}\.(.|\n)*Hint: "
    with pytest.raises(ValueError, match=words):
        drawing.sample([PROMPT, [5] * (context - 3)], fits, seed=0)


def test_sampling_leaves_the_global_generator_where_it_was(model):
    torch.manual_seed(0)
    expected = torch.rand(3)
    torch.manual_seed(0)
    sampler(model).sample([PROMPT], SamplingParams(1.0, 1.0, 4), seed=5)
    assert torch.equal(torch.rand(3), expected)


@pytest.mark.slow
def test_completions_come_back_in_the_prompts_order(model):
    shuffled = [PROMPT, *OTHERS] * 3
    random.Random(0).shuffle(shuffled)
    cold = SamplingParams(1e-4, 1.0, 6)
    for rows in (2, 5, 256):
        drawn = sampler(model, rows).sample(shuffled, cold, seed=0)
        alone = {tuple(p): sampler(model).sample([p], cold, seed=0)[0] for p in shuffled}
        assert drawn == [alone[tuple(p)] for p in shuffled]


def test_a_response_ends_with_its_first_end_token_or_at_the_cap(model):
    with torch.no_grad():
        model.lm_head.weight[END] += model.lm_head.weight.mean(0) + 0.05
    drawn = sampler(model).sample([PROMPT] * 300, SamplingParams(1.0, 1.0, 8), seed=2)
    finishes = Counter(completion.finish for completion in drawn)
    assert finishes["stop"] and finishes["length"]
    for completion in drawn:
        assert (completion.ids[-1] == END) == (completion.finish == "stop")
        assert END not in completion.ids[:-1]
        assert len(completion.ids) == 8 or completion.finish == "stop"


def test_how_a_release_likes_to_sample_changes_nothing(model):
    """Qwen3's generation_config.json says top_k 20 and temperature .6; others punish repetition."""
    before = sampler(model).sample(OTHERS * 4, SamplingParams(1.0, 1.0, 12), seed=5)
    kept = copy.deepcopy(model.generation_config)
    model.generation_config.update(
        do_sample=True, top_k=1, temperature=0.1, top_p=0.1, repetition_penalty=9.0
    )
    try:
        assert sampler(model).sample(OTHERS * 4, SamplingParams(1.0, 1.0, 12), seed=5) == before
    finally:
        model.generation_config = kept


@pytest.fixture(scope="module")
def exact(model):
    """The model in float64: rounding changes no draw."""
    return copy.deepcopy(model).double()


@pytest.mark.slow
def test_a_completion_does_not_depend_on_what_shares_its_batch(exact):
    prompts = [PROMPT, *OTHERS] * 4
    sampling = SamplingParams(1.0, 0.9, 12)
    together = sampler(exact).sample(prompts, sampling, seed=5)
    assert len(set(together)) > 12
    for rows in (1, 2, 5, 13):
        assert sampler(exact, rows).sample(prompts, sampling, seed=5) == together
    fewer = sampler(exact).sample(prompts[:7], sampling, seed=5)
    assert fewer == together[:7]


def ends_often(model):
    """The end token drawn about every eighth time."""
    changed = copy.deepcopy(model)
    with torch.no_grad():
        p = next_token(changed, PROMPT)
        changed.lm_head.weight[END] = changed.lm_head.weight[p.argmax()]
    return changed


def test_each_response_that_ends_is_reported_once_and_before_the_others_are_done(exact):
    ending, reported = ends_often(exact), []
    drawing = sampler(ending)
    drawing.on_finish = lambda place, completion: reported.append((place, completion))
    done = drawing.sample([PROMPT] * 40, SamplingParams(1.0, 1.0, 30), seed=2)
    places = [place for place, _ in reported]
    assert sorted(places) == [i for i, completion in enumerate(done) if completion.finish == "stop"]
    assert len(places) > 20
    assert all(completion == done[place] for place, completion in reported)
    lengths = [len(completion.ids) for _, completion in reported]
    assert lengths == sorted(lengths) and lengths[0] < lengths[-1]


def test_rows_that_have_ended_leave_the_batch(exact, monkeypatch):
    ending, rows = ends_often(exact), []
    inner = ending.model.forward
    monkeypatch.setattr(
        ending.model,
        "forward",
        lambda **inputs: rows.append(len(inputs["input_ids"])) or inner(**inputs),
    )
    done = sampler(ending).sample([PROMPT] * 40, SamplingParams(1.0, 1.0, 30), seed=2)
    steps = rows[3:]  # after two looks at what the model is, and the one distinct prompt
    assert steps == sorted(steps, reverse=True) and steps[-1] < 20
    for token, computed in enumerate(steps, start=1):
        going_on = sum(len(completion.ids) > token for completion in done)
        assert 0.75 * computed < going_on <= computed


@pytest.mark.parametrize("stride", [3, 8])
def test_looking_every_few_tokens_changes_no_completion(exact, monkeypatch, stride):
    ending, sampling = ends_often(exact), SamplingParams(1.0, 1.0, 30)
    expected = sampler(ending).sample([PROMPT] * 40, sampling, seed=2)
    monkeypatch.setattr(transformers_sampler, "CPU_STRIDE", stride)
    assert sampler(ending).sample([PROMPT] * 40, sampling, seed=2) == expected
