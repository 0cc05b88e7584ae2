"""Decoding by packed weights: the model's logits, of the weights as they are, and nothing left."""

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from geosd.models.output_head import float32_head_logits
from geosd.sampling.decoding.decode_session import PreallocatedSession
from geosd.sampling.decoding.decode_step import EagerStep
from geosd.sampling.decoding.packed_step import PackedStep, can_pack_step
from geosd.sampling.paused_part import PartLeftError, PausedPart
from geosd.sampling.sampler import SamplerPrompts, SamplingParams
from geosd.sampling.transformers_sampler import TransformersSampler

NEW = 12
PROMPTS = [[5, 6, 7, 8, 9, 10, 11, 12], [20, 21, 22], [5, 40, 3, 9], [20, 21, 22]]
SAMPLING = SamplingParams(temperature=1.0, top_p=1.0, max_new_tokens=NEW)

pytestmark = pytest.mark.skipif(
    not can_pack_step(nn.Linear(2, 2)), reason="oneDNN packs no float32 layers on this machine"
)


def opened(model, step, prompts=PROMPTS):
    return PreallocatedSession(model, step, prompts, pad_id=0, new_tokens=NEW)


def with_biases(model):
    """The same, but that the projections of queries have a bias, as Qwen2's do."""
    for layer in model.model.layers:
        layer.self_attn.q_proj.bias = nn.Parameter(torch.randn(48) / 4)
    return model


@torch.inference_mode()
@pytest.mark.parametrize("name", ["qwen3", "olmo3", "llama", "smollm2"])
@pytest.mark.parametrize("prompts", [PROMPTS, PROMPTS[:1]])
def test_float32_logits_are_those_of_the_models_own_layers(name, prompts, random_weights):
    model = with_biases(random_weights(name))
    plain = opened(model, EagerStep(model), prompts)
    packed = opened(model, PackedStep(model, len(prompts)), prompts)
    for _ in range(NEW - 1):
        ids = plain.logits.argmax(-1)
        plain.step(ids)
        packed.step(ids)
        assert_close(packed.logits, plain.logits, rtol=1e-4, atol=1e-4)


@torch.inference_mode()
def test_bfloat16_logits_are_float32_and_nearer_to_float64_than_their_rounding(random_weights):
    model = random_weights("llama", torch.bfloat16)
    if not can_pack_step(model):
        pytest.skip("oneDNN multiplies no bfloat16 here")
    exact = random_weights("llama", torch.bfloat16).double()
    hidden = torch.randn(4, 48).bfloat16()
    step = PackedStep(model, 4)
    with float32_head_logits(model), step._in_place():
        logits = model.lm_head(hidden)
    assert logits.dtype == torch.float32
    expected = exact.lm_head(hidden.double())
    error = (logits - expected).abs().max()
    assert error < 1e-4 < (expected.bfloat16() - expected).abs().max()
    packed, eager = opened(model, step), opened(model, EagerStep(model))
    with float32_head_logits(model):
        packed.step(torch.tensor([7, 8, 9, 10]))
        eager.step(torch.tensor([7, 8, 9, 10]))
    assert_close(packed.logits, eager.logits, rtol=0.05, atol=0.2)


def test_the_layers_are_as_before_after_each_step_and_after_an_error(random_weights):
    model = random_weights("llama")
    step = PackedStep(model, 2)
    before = {name: dict(vars(module)) for name, module in model.named_modules()}
    model.lm_head.forward = own = lambda x: x  # as `float32_head_logits` sets it
    with pytest.raises(RuntimeError), step._in_place():
        assert model.lm_head.forward is not own
        raise RuntimeError
    assert vars(model.lm_head).pop("forward") is own
    assert {name: dict(vars(module)) for name, module in model.named_modules()} == before


def test_the_copies_are_counted(random_weights):
    model = random_weights("smollm2")  # whose head is its embedding
    linear = [m for m in model.modules() if type(m) is nn.Linear]
    assert PackedStep(model, 8).bytes >= 4 * sum(m.weight.numel() for m in linear)


def sampler(model, packed=True, rows=4):
    return TransformersSampler(model, end_ids=[1], pad_id=0, rows=rows, packed=packed)


@pytest.mark.parametrize("change", ["in place", "by data"])
def test_a_batch_is_of_the_weights_as_they_are_when_it_begins(change, random_weights):
    model, other = random_weights("llama"), random_weights("llama")
    ours = sampler(model)
    first = ours.sample(PROMPTS, SAMPLING, seed=3)
    assert ours.record()["step"]["kind"] == "packed"
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            shifted = parameter + 0.05 * torch.sin(torch.arange(parameter.numel())).view_as(
                parameter
            )
            if change == "in place":
                parameter.copy_(shifted)
            else:
                parameter.data = shifted  # which no version of a tensor counts
            other.get_parameter(name).copy_(shifted)
    again = ours.sample(PROMPTS, SAMPLING, seed=3)
    assert again == sampler(other).sample(PROMPTS, SAMPLING, seed=3) != first


def test_a_batch_gives_the_same_bytes_alone_and_among_others(random_weights):
    model = random_weights("llama")
    one, other = SamplerPrompts(PROMPTS, 5), SamplerPrompts([[9, 9, 9]], 6)

    def sampled(*batches):
        chunks = sampler(model).sample_chunks(batches, SAMPLING)
        return {place: done for chunk in chunks for place, done in chunk.items()}

    alone, among = sampled(one), sampled(other, one)
    assert [among[place + 1] for place in range(len(PROMPTS))] == list(map(alone.get, range(4)))


def test_a_batch_that_was_left_in_the_middle_ends_with_the_same_bytes(random_weights, tmp_path):
    model = random_weights("llama")
    whole = sampler(model).sample(PROMPTS, SAMPLING, seed=8)
    calls = []

    def after_five():
        calls.append(None)
        return len(calls) > 5

    left = sampler(model)
    left.paused, left.stop_requested = PausedPart(tmp_path / "part", "job"), after_five
    with pytest.raises(PartLeftError):
        left.sample(PROMPTS, SAMPLING, seed=8)
    went_on = sampler(model)
    went_on.paused = PausedPart(tmp_path / "part", "job")
    assert went_on.sample(PROMPTS, SAMPLING, seed=8) == whole


def test_without_the_setting_nothing_is_packed(random_weights):
    ours = sampler(random_weights("llama"), packed=False)
    ours.sample(PROMPTS, SAMPLING, seed=3)
    assert ours.record()["step"] == {"kind": "eager"}


def test_what_cannot_be_packed_decodes_as_it_is(random_weights):
    model = random_weights("llama", torch.float64)
    assert not can_pack_step(model)
    ours = sampler(model)
    ours.sample(PROMPTS, SAMPLING, seed=3)
    assert ours.record()["step"] == {"kind": "eager"}
    with torch.autocast("cpu", torch.bfloat16):
        assert not can_pack_step(random_weights("llama"))
