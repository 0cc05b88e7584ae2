"""The compiled step against the eager one, and what is loaded from the folder of compiled steps."""

import os
from copy import deepcopy

import pytest
import torch
from cases import decoder
from torch.testing import assert_close

from geosd.models.output_head import float32_head_logits
from geosd.sampling.decoding import compiled_step
from geosd.sampling.decoding.compiled_step import (
    NOTE,
    STEP,
    compiled_step_folder,
    open_compiled_step,
)
from geosd.sampling.decoding.decode_session import PreallocatedSession
from geosd.sampling.decoding.decode_step import EagerStep
from geosd.sampling.sampler import SamplingParams
from geosd.sampling.transformers_sampler import TransformersSampler

PROMPTS = [[5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15], [20, 21, 22], [5, 40, 3, 9], [20, 21, 22]]
COLD = SamplingParams(0.0, 1.0, 6)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("GEOSD_CACHE", str(tmp_path))
    monkeypatch.delenv("GEOSD_COMPILE", raising=False)
    return tmp_path


def sampler(model):
    return TransformersSampler(model, [1], 0, compiled=True)


@pytest.mark.slow
@torch.inference_mode()
def test_a_compiled_step_computes_what_the_model_does(compiled_steps, random_weights):
    """Sliding and full layers, unequal prompts."""
    model = random_weights("olmo3")
    compiled = open_compiled_step(model)
    sessions = [
        PreallocatedSession(model, step, PROMPTS, pad_id=0, new_tokens=600)
        for step in (compiled, EagerStep(model))
    ]
    assert compiled.read_weights()

    def advance(tokens):
        for _ in range(tokens):
            ids = sessions[1].logits.argmax(-1)
            for session in sessions:
                session.step(ids)
            assert_close(sessions[0].logits, sessions[1].logits, rtol=1e-4, atol=1e-4)

    advance(280)  # past the first growth of the cache
    model.lm_head.weight.mul_(-1.3)  # in place, as an optimiser updates
    advance(2)
    for rows in ([0, 2, 3], [1]):  # a single row too, though more were compiled for
        for session in sessions:
            session.keep(torch.tensor(rows))
        advance(2)

    again = sampler(model)
    cold = again.sample(PROMPTS, COLD, seed=0)
    assert again.record()["step"]["kind"] == "compiled"
    assert cold == TransformersSampler(model, [1], 0).sample(PROMPTS, COLD, seed=0)
    with torch.autocast("cpu", torch.bfloat16):  # the program knows no autocast: eager then
        halved = again.sample(PROMPTS, COLD, seed=0)
        assert halved == TransformersSampler(model, [1], 0).sample(PROMPTS, COLD, seed=0)
    model.double()
    assert not compiled.read_weights()
    assert again.sample(PROMPTS, COLD, seed=0)


@pytest.mark.slow
@torch.inference_mode()
def test_a_compiled_step_in_bfloat16_is_as_close_to_float32_as_the_models_own(folder):
    """The program ends at the hidden states; the head's product is float32 in both."""
    sizes = {"vocab_size": 64, "hidden_size": 48, "intermediate_size": 96, "num_hidden_layers": 1}
    heads = {"num_attention_heads": 6, "head_dim": 8, "tie_word_embeddings": True}
    model = decoder("Llama", **sizes, **heads).eval()
    for parameter in model.parameters():  # as training casts them: frequencies stay float32
        parameter.data = 8 * parameter.data.bfloat16()
    exact = deepcopy(model)
    for parameter in exact.parameters():
        parameter.data = parameter.data.float()
    compiled = open_compiled_step(model)
    assert compiled.read_weights()
    logits = []  # [T, B, V] of each
    for of, step in ((model, compiled), (model, EagerStep(model)), (exact, EagerStep(exact))):
        with float32_head_logits(of):
            session = PreallocatedSession(of, step, PROMPTS, pad_id=0, new_tokens=40)
            seen = []
            for token in range(30):
                session.step(torch.full((len(PROMPTS),), 5 + token))
                seen.append(session.logits)
        logits.append(torch.stack(seen))
    ours, own = ((each - logits[2]).norm() / logits[2].norm() for each in logits[:2])
    assert logits[0].dtype == torch.float32 and 0 < ours < 1.3 * own < 0.1
    drawn = sampler(model)
    drawn.sample(PROMPTS, COLD, seed=0)
    assert drawn.record()["step"]["kind"] == "compiled"
    model.float()
    assert not compiled.read_weights()


def fake_cache(model):
    cache = compiled_step_folder(model.config)
    cache.mkdir(parents=True)
    (cache / STEP).write_text("no program")
    (cache / NOTE).touch()
    return cache


@pytest.mark.parametrize("note", ["0", ""])  # of another file, and what a power cut leaves
def test_a_file_that_was_not_compiled_there_is_not_loaded(note, folder, random_weights, caplog):
    model = random_weights("qwen3")
    (fake_cache(model) / NOTE).write_text(note)
    with pytest.raises(RuntimeError, match=rf"{STEP} is not the file that(.|\n)*Hint: remove"):
        open_compiled_step(model)
    # Sampling goes on without the program, and says so.
    assert sampler(model).sample(PROMPTS, COLD, seed=0)
    assert "sampling without a compiled step" in caplog.text


def test_a_folder_that_others_may_write_is_not_loaded(folder, random_weights):
    model = random_weights("qwen3")
    os.chmod(fake_cache(model) / STEP, 0o666)
    with pytest.raises(RuntimeError, match="may be written by others"):
        open_compiled_step(model)


def test_without_a_compiler_the_models_own_modules_sample(
    folder, monkeypatch, caplog, random_weights
):
    monkeypatch.setattr(compiled_step.shutil, "which", lambda name: None)
    model = random_weights("qwen3")
    eager = sampler(model)
    assert eager.record()["step"] == {"kind": "none yet"}
    drawn = eager.sample(PROMPTS, COLD, seed=0)
    assert drawn == TransformersSampler(model, [1], 0).sample(PROMPTS, COLD, seed=0)
    assert eager.record()["step"] == {"kind": "eager"}
    assert "g++ is not installed" in caplog.text


def test_the_folder_follows_from_the_architecture_and_not_from_the_weights(folder, random_weights):
    model, other = random_weights("qwen3"), random_weights("qwen3")
    other.config.pad_token_id, other.config._name_or_path = 7, "elsewhere"
    assert compiled_step_folder(model.config) == compiled_step_folder(other.config)
    other.config.rms_norm_eps = 1e-3
    assert compiled_step_folder(model.config) != compiled_step_folder(other.config)
    assert compiled_step_folder(model.config).is_relative_to(folder)
