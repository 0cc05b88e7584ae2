"""An installed vLLM on tiny models of the paper's architectures, against transformers by token.

Run by `make test-vllm`, in an environment of its own.
"""

import gc
import importlib.util
import json
import math
import os

import psutil
import pytest
import torch
from cases import decoder

from geosd.models.load_and_save import weights_as_saved
from geosd.sampling import weight_delivery
from geosd.sampling.sampler import SamplingParams
from geosd.sampling.transformers_sampler import TransformersSampler
from geosd.sampling.vllm_sampler import VllmSampler, start_vllm
from geosd.sampling.weight_delivery import WeightDelivery

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        importlib.util.find_spec("vllm") is None,
        reason="vLLM is not installed here. Hint: `make test-vllm` runs this file where it is.",
    ),
]

FAMILIES = {"qwen3": "Qwen3", "llama": "Llama", "olmo3": "Olmo3"}
END, VOCABULARY, CONTEXT = 1, 128, 512
# Longer than vLLM's cache block of 128 on a CPU: shorter prompts are never taken from the cache.
PROMPTS = torch.randint(2, VOCABULARY, (6, 200), generator=torch.Generator().manual_seed(1))
PROMPTS = [row[: 200 - 7 * place].tolist() for place, row in enumerate(PROMPTS)]
GREEDY = SamplingParams(0.0, 1.0, 24)


def tiny(family, tied):
    """A random model whose next tokens differ from prompt to prompt."""
    model = decoder(
        FAMILIES[family],
        vocab_size=VOCABULARY,
        hidden_size=64,
        head_dim=32,  # the smallest that vLLM's kernels for a CPU know
        intermediate_size=96,
        max_position_embeddings=CONTEXT,
        initializer_range=0.2,
        tie_word_embeddings=tied,
        eos_token_id=END,
        bos_token_id=None,
    )
    return model.float().eval()


@torch.no_grad()
def take_a_step(model, seed):
    generator = torch.Generator().manual_seed(seed)
    for value in model.parameters():
        noise = torch.randn(value.shape, generator=generator)
        value.add_(0.3 * value.std().clamp_min(0.1) * noise)


@torch.no_grad()
def log_probabilities(model, prompt, ids):
    """Of each response token, by one forward pass of transformers [R]."""
    logits = model(torch.tensor([[*prompt, *ids]])).logits[0, len(prompt) - 1 : -1]
    return logits.float().log_softmax(-1).gather(1, torch.tensor(ids)[:, None])[:, 0]


class Pair:
    """A model, and vLLM on a copy of it."""

    def __init__(self, model, folder, **options):
        self.model = model
        model.save_pretrained(folder)
        memory = {"memory": 0.1, "sequences": 16, "precision": "float32"}
        self.opened = start_vllm(folder, live=True, **{**memory, **options})
        self.stale = self.sampler(None)  # never synced: what the engine holds
        self.live = self.sampler(lambda: weights_as_saved(model))

    def sampler(self, weights, by_memory=False):
        # Several workers on one CPU have one device's name, and open one process's buffer.
        delivery = WeightDelivery(by_memory=by_memory, part_bytes=20_000)
        return VllmSampler(lambda: self.opened, [END], weights, delivery=delivery)

    def expected(self):
        return TransformersSampler(self.model, [END], pad_id=0).sample(PROMPTS, GREEDY, seed=0)

    def gaps(self, seed=0):
        """log p of vLLM - log p of transformers, of sampled tokens [R of all prompts]."""
        parameters = [
            self.opened.parameters(
                temperature=1.0, max_tokens=64, seed=seed + i, logprobs=0, ignore_eos=True
            )
            for i in range(len(PROMPTS))
        ]
        prompts = [{"prompt_token_ids": prompt} for prompt in PROMPTS]
        gaps = []
        for prompt, output in zip(
            prompts, self.opened.llm.generate(prompts, parameters, use_tqdm=False), strict=True
        ):
            drawn = output.outputs[0]
            ids = list(drawn.token_ids)
            logprobs = [
                place[token].logprob for place, token in zip(drawn.logprobs, ids, strict=True)
            ]
            gaps.append(
                torch.tensor(logprobs)
                - log_probabilities(self.model, prompt["prompt_token_ids"], ids)
            )
        return torch.cat(gaps)

    def close(self):
        from vllm.distributed.parallel_state import cleanup_dist_env_and_memory

        self.opened.llm.llm_engine.engine_core.shutdown()
        self.opened = self.stale = self.live = None
        gc.collect()
        cleanup_dist_env_and_memory()


@pytest.fixture(scope="module", autouse=True)
def one_core():
    os.environ["VLLM_CPU_OMP_THREADS_BIND"] = "nobind"


CASES = {
    "qwen3-tied": ("qwen3", True, {"process": "same"}),
    "qwen3": ("qwen3", False, {"process": "same"}),
    "llama": ("llama", False, {"process": "same"}),
    "olmo3": ("olmo3", False, {"process": "own"}),
    "qwen3-tied-on-two-devices": ("qwen3", True, {"process": "own", "tensor_parallel": 2}),
}


@pytest.fixture(params=CASES, scope="module")
def pair(request, tmp_path_factory):
    family, tied, options = CASES[request.param]
    pair = Pair(tiny(family, tied), tmp_path_factory.mktemp("model"), **options)
    yield pair
    pair.close()


def test_after_each_sync_greedy_tokens_are_those_of_transformers_and_before_it_they_are_not(pair):
    assert pair.stale.sample(PROMPTS, GREEDY, seed=0) == pair.expected()
    for step in (1, 2):
        take_a_step(pair.model, step)
        expected = pair.expected()
        assert pair.stale.sample(PROMPTS, GREEDY, seed=0) != expected
        assert pair.live.sample(PROMPTS, GREEDY, seed=0) == expected
        assert pair.live.record()["weight_syncs"] == step
        assert pair.opened.llm.get_weight_version() == str(step)


def test_weights_in_shared_memory_are_sampled_as_those_in_files_are(pair):
    """On a CPU the shared memory is the machine's: all but CUDA's own calls are those of a GPU."""
    by_memory = pair.sampler(lambda: weights_as_saved(pair.model), by_memory=True)
    for step in (4, 5):
        take_a_step(pair.model, step)
        expected = pair.expected()
        assert pair.stale.sample(PROMPTS, GREEDY, seed=0) != expected
        assert by_memory.sample(PROMPTS, GREEDY, seed=0) == expected
    assert by_memory.record()["weight_way"] == "memory"


def test_memory_that_a_worker_cannot_open_leaves_the_way_through_files(pair, monkeypatch):
    monkeypatch.setattr(weight_delivery, "share_buffer", lambda buffer: [b"", b"/torch_nowhere", 1])
    by_memory = pair.sampler(lambda: weights_as_saved(pair.model), by_memory=True)
    take_a_step(pair.model, 6)
    assert by_memory.sample(PROMPTS, GREEDY, seed=0) == pair.expected()
    assert by_memory.record()["weight_way"] == "files"


def print_gaps(gaps, name):
    """Print the numbers of docs/scaling.md, which pytest -s shows."""
    figures = {"largest": gaps.abs().max(), "mean": gaps.abs().mean(), "bias": gaps.mean()}
    figures = {key: f"{value.item():.1e}" for key, value in figures.items()}
    print("\nlog-probability gap,", name, json.dumps({**figures, "tokens": len(gaps)}))


def test_sampled_tokens_have_the_trainers_log_probability(pair):
    pair.live.sync(weights_as_saved(pair.model))
    gaps = pair.gaps()
    print_gaps(gaps, "float32")
    assert gaps.abs().max() < 1e-4


def test_without_the_reset_a_cached_prompt_is_answered_by_the_old_weights(pair, monkeypatch):
    pair.live.sample(PROMPTS, GREEDY, seed=0)  # every prompt is in the cache now
    take_a_step(pair.model, 3)
    with monkeypatch.context() as without:
        without.setattr(pair.opened.llm, "reset_prefix_cache", lambda: True)
        assert pair.live.sample(PROMPTS, GREEDY, seed=0) != pair.expected()
    assert pair.live.sample(PROMPTS, GREEDY, seed=0) == pair.expected()


def test_the_same_seed_gives_the_same_tokens_whatever_shares_the_batch(pair):
    sampling = SamplingParams(1.0, 0.9, 12)
    prompts = PROMPTS[:2] * 4
    drawn = pair.stale.sample(prompts, sampling, seed=5)
    assert drawn == pair.stale.sample(prompts, sampling, seed=5)
    assert drawn != pair.stale.sample(prompts, sampling, seed=6)
    assert drawn[:3] == pair.stale.sample(prompts[:3], sampling, seed=5)
    assert len({completion.ids for completion in drawn[::2]}) > 1  # samples of one prompt differ


def test_each_response_that_the_model_ends_is_reported_before_the_call_returns(pair):
    reported = {}
    pair.stale.on_finish, pair.stale.end_ids = reported.__setitem__, list(range(1, 40))
    try:
        drawn = pair.stale.sample(PROMPTS * 3, SamplingParams(1.0, 1.0, 4), seed=0)
    finally:
        pair.stale.on_finish, pair.stale.end_ids = None, [END]
    assert reported == {
        place: completion for place, completion in enumerate(drawn) if completion.finish == "stop"
    }
    assert 0 < len(reported) < len(drawn)


def test_a_response_ends_with_its_end_token_or_at_the_cap(pair):
    often = sorted({token for prompt in PROMPTS for token in prompt})[:40]
    pair.stale.end_ids, kept = often, pair.stale.end_ids
    try:
        drawn = pair.stale.sample(PROMPTS * 5, SamplingParams(1.0, 1.0, 4), seed=0)
    finally:
        pair.stale.end_ids = kept
    assert {completion.finish for completion in drawn} == {"stop", "length"}
    for completion in drawn:
        assert (completion.ids[-1] in often) == (completion.finish == "stop")
        assert not set(completion.ids[:-1]) & set(often)
        assert len(completion.ids) == 4 or completion.finish == "stop"


def test_an_update_that_leaves_out_weights_is_refused(pair):
    with pytest.raises(Exception, match="keep their old values"):
        pair.live.sync(list(weights_as_saved(pair.model))[:-1])


def test_the_record_says_what_the_engine_is(pair):
    record = pair.stale.record()
    assert record["version"].startswith("0.32") and record["max_num_seqs"] == 16
    assert record["dtype"] == "float32" and record["attention"]


def test_in_bfloat16_the_gap_is_that_of_bfloat16(tmp_path):
    pair = Pair(tiny("qwen3", False), tmp_path, process="same", precision="bfloat16")
    try:
        pair.live.sync(weights_as_saved(pair.model))
        exact = pair.gaps()
        with torch.autocast("cpu", torch.bfloat16):  # as the trainer runs in bfloat16
            trained = pair.gaps()
    finally:
        pair.close()
    print_gaps(exact, "bfloat16 against a trainer in float32")
    print_gaps(trained, "bfloat16 against a trainer in bfloat16")
    rounding = (exact - trained).abs()  # of the same tokens: what bfloat16 does to the trainer
    assert 0 < exact.abs().mean() < 4 * rounding.mean()


@pytest.mark.parametrize("process", ["same", "own"])
def test_a_nan_among_the_logits_is_an_error_with_prompt_and_position(process, tmp_path):
    before = psutil.Process().children(recursive=True)
    pair = Pair(tiny("qwen3", False), tmp_path, process=process)
    try:
        started = {*psutil.Process().children(recursive=True)}.difference(before)
        titles = {each.cmdline()[0] for each in started}
        engine = {"VLLM::EngineCore"} if process == "own" else set()
        assert {title for title in titles if title.startswith("VLLM")} == engine  # and no worker
        assert pair.live.sample(PROMPTS, GREEDY, seed=0) == pair.expected()
        with torch.no_grad():
            pair.model.lm_head.weight[5, 0] = math.nan
        with pytest.raises(FloatingPointError, match=r"token 1 of a response to prompt \d"):
            pair.live.sample(PROMPTS, GREEDY, seed=0)
    finally:
        pair.close()
