"""Logits of decode sessions against transformers' own generate(), token for token."""

import pytest
import torch
from torch.testing import assert_close

from geosd.sampling.decoding import kv_cache
from geosd.sampling.decoding.decode_session import (
    ModelCacheSession,
    PreallocatedSession,
    takes_preallocated_session,
)
from geosd.sampling.decoding.decode_step import ATTENTION, EagerStep

NEW = 24
PROMPTS = [[5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15], [20, 21, 22], [5, 40, 3, 9], [20, 21, 22]]
PREALLOCATED = ("qwen3", "olmo3", "llama", "smollm2")
MODELS = (*PREALLOCATED, "gemma2", "gpt2")


def opened(model, name, prompts=PROMPTS):
    if name in PREALLOCATED:
        return PreallocatedSession(model, EagerStep(model), prompts, pad_id=0, new_tokens=NEW)
    return ModelCacheSession(model, prompts, pad_id=0)


@torch.inference_mode()
def generated(model, prompts=PROMPTS):
    """Greedy tokens [B, NEW] and their logits [B, NEW, V] by transformers."""
    width = max(map(len, prompts))
    ids = torch.tensor([[0] * (width - len(p)) + p for p in prompts])
    mask = torch.tensor([[0] * (width - len(p)) + [1] * len(p) for p in prompts])
    out = model.generate(
        ids,
        attention_mask=mask,
        do_sample=False,
        max_new_tokens=NEW,
        min_new_tokens=NEW,
        eos_token_id=None,
        pad_token_id=0,
        output_logits=True,
        return_dict_in_generate=True,
    )
    return out.sequences[:, width:], torch.stack(out.logits, 1)


@torch.inference_mode()
@pytest.mark.parametrize("name", MODELS)
def test_greedy_tokens_and_logits_are_those_of_generate(name, random_weights):
    model = random_weights(name)
    tokens, logits = generated(model)
    session = opened(model, name)
    for token in range(NEW):
        assert_close(session.logits, logits[:, token], rtol=1e-4, atol=1e-4)
        assert torch.equal(session.logits.argmax(-1), tokens[:, token])
        session.step(tokens[:, token])
    assert tokens.unique().numel() > 5  # no model that repeats one token


@torch.inference_mode()
@pytest.mark.parametrize(
    ("name", "dtype", "apart"),
    [
        ("olmo3", torch.float64, 1e-9),
        ("smollm2", torch.float64, 1e-9),
        # Its eager attention takes the softmax in float32, where float64's mask is all -inf.
        ("gemma2", torch.float32, 1e-4),
        ("gemma2", torch.bfloat16, 1e-1),
    ],
)
def test_rows_that_stay_are_computed_as_before(name, dtype, apart, random_weights):
    model = random_weights(name, dtype)
    tokens, _ = generated(model)
    session, whole = opened(model, name), opened(model, name)
    stay = torch.tensor([3, 0])
    for token in range(NEW):
        whole.step(tokens[:, token])
        session.step(tokens[:, token] if token < 5 else tokens[stay, token])
        if token == 4:
            session.keep(stay)
    assert whole.logits.isfinite().all()
    assert_close(session.logits, whole.logits[stay], rtol=apart, atol=apart)


@torch.inference_mode()
def test_a_cache_that_grows_keeps_what_it_holds(monkeypatch, random_weights):
    monkeypatch.setattr(kv_cache, "CHUNK", 3)
    model = random_weights("qwen3")
    tokens, logits = generated(model)
    session = opened(model, "qwen3")
    sizes = set()
    for token in range(NEW):
        assert_close(session.logits, logits[:, token], rtol=1e-4, atol=1e-4)
        session.step(tokens[:, token])
        sizes.add(session.cache.columns)
    assert len(sizes) > 2 and max(sizes) == len(PROMPTS[0]) + NEW


@torch.inference_mode()
def test_a_model_in_bfloat16_and_autocast_stay_near_float32(random_weights):
    model = random_weights("llama")
    tokens, logits = generated(model)
    low = opened(random_weights("llama", torch.bfloat16), "llama")
    for token in range(NEW):
        low.step(tokens[:, token])
    high = opened(model, "llama")
    with torch.autocast("cpu", torch.bfloat16):
        cast = opened(model, "llama")
        for token in range(NEW):
            cast.step(tokens[:, token])
    for token in range(NEW):
        high.step(tokens[:, token])
    spread = high.logits.std()
    for session in (low, cast):
        assert (session.logits.float() - high.logits).abs().mean() < 0.05 * spread
        assert {part.dtype for pair in session.cache.layers for part in pair} == {torch.bfloat16}


@pytest.mark.parametrize("name", MODELS)
def test_a_model_with_another_attention_is_recognised(name, random_weights):
    model = random_weights(name)
    before = model.config._attn_implementation
    with torch.inference_mode():
        assert takes_preallocated_session(model) == (name in PREALLOCATED)
    assert model.config._attn_implementation == before != ATTENTION


@torch.inference_mode()
def test_a_prompt_that_several_rows_share_is_run_once(monkeypatch, random_weights):
    model, rows = random_weights("qwen3"), []
    inner = model.model.forward
    monkeypatch.setattr(
        model.model,
        "forward",
        lambda **inputs: rows.append(len(inputs["input_ids"])) or inner(**inputs),
    )
    session = opened(model, "qwen3", [PROMPTS[1]] * 7)
    session.step(session.logits.argmax(-1))
    assert rows == [1, 7]
    assert (session.logits == session.logits[0]).all()


@torch.inference_mode()
@pytest.mark.parametrize("name", PREALLOCATED)
@pytest.mark.parametrize("rest", [PROMPTS, PROMPTS[1:3], [p[:3] for p in PROMPTS]])
def test_a_long_beginning_of_all_prompts_is_run_once(name, rest, monkeypatch, random_weights):
    model, sizes = random_weights(name), []
    prompts = [[(7 * i) % 50 + 2 for i in range(40)] + own for own in rest]
    tokens, logits = generated(model, prompts)
    inner = model.model.forward
    monkeypatch.setattr(
        model.model,
        "forward",
        lambda **inputs: sizes.append(tuple(inputs["input_ids"].shape)) or inner(**inputs),
    )
    session = opened(model, name, prompts)
    distinct, longest = len(set(map(tuple, rest))), max(map(len, rest))
    # A sliding window counts columns, and padding would stand between the two passes.
    whole = [(distinct, 40 + longest)]
    assert sizes == (whole if name == "olmo3" else [(1, 40), (distinct, longest)])
    for token in range(NEW):
        assert_close(session.logits, logits[:, token], rtol=1e-4, atol=1e-4)
        session.step(tokens[:, token])
