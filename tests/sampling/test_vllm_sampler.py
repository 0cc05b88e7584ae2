"""The sampler's side of vLLM's interface, against a stand-in for vLLM's engine.

The stand-in keeps vLLM's promises, the unpleasant ones too: weights change only between start and
finish, and a prompt that is cached is answered by the old weights until the cache is reset.
"""

from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from safetensors.torch import load_file
from torch import nn

from geosd.models.load_and_save import weights_as_saved
from geosd.sampling.sampler import Completion, SamplerPrompts, SamplingParams
from geosd.sampling.vllm_sampler import VllmEngine, VllmSampler
from geosd.sampling.weight_delivery import WeightDelivery
from geosd.seeds import seed_of

END = 9
PROMPTS = [[1, 2], [3], [1, 2]]
DECODING = SamplingParams(0.7, 0.95, 8)


@dataclass(frozen=True)
class Parameters:
    """The fields of vLLM's SamplingParams that are used; any other name is an error."""

    temperature: float
    top_p: float
    top_k: int
    max_tokens: int
    ignore_eos: bool
    stop_token_ids: list
    seed: int
    detokenize: bool


class StandIn:
    """Answers with the number that its one weight holds, and the length of the prompt."""

    def __init__(self, ends="stop", resets=True, nans=0):
        self.engine_core = SimpleNamespace(get_output=self.get_output)
        self.nans = nans  # in the logits of the request that ends last
        self.weights, self.loading, self.cache = {"token": torch.tensor([5.0])}, None, {}
        self.calls, self.requests, self.files, self.version, self.queue = [], [], [], None, {}
        self.ends, self.resets = ends, resets
        self.in_memory = {"weights", "kv_cache"}

    def sleep(self, level):
        assert level == 2 and self.in_memory == {"weights", "kv_cache"}
        self.calls.append("sleep")
        self.weights, self.cache, self.in_memory = {}, {}, set()

    def wake_up(self, tags):
        assert not self.in_memory & set(tags)
        self.calls.append("wake " + " ".join(tags))
        self.in_memory |= set(tags)

    def start_weight_update(self):
        assert "weights" in self.in_memory
        self.calls.append("start")
        self.loading = {}

    def update_weights(self, request):
        (key, info), *more = request.items()
        assert key == "update_info" and not more and list(info) == ["path"]
        self.calls.append("update")
        self.files.append(Path(info["path"]))
        self.loading |= load_file(info["path"])

    def finish_weight_update(self, weight_version=None):
        self.calls.append("finish")
        self.weights, self.loading, self.version = self.loading, None, weight_version

    def reset_prefix_cache(self):
        self.calls.append("reset")
        self.cache = {}
        return self.resets

    def enqueue(self, prompts, parameters, use_tqdm):
        assert self.loading is None and not self.queue
        assert self.in_memory == {"weights", "kv_cache"}
        self.calls.append("generate")
        self.requests.append((prompts, parameters))
        now = int(self.weights["token"])
        for number, prompt in enumerate(prompts, start=12 * len(self.requests)):
            ids = tuple(prompt["prompt_token_ids"])
            token = self.cache.setdefault(ids, now)
            drawn = SimpleNamespace(token_ids=[token, len(ids), END], finish_reason=self.ends)
            self.queue[f"{number}"] = SimpleNamespace(outputs=[drawn], request_id=f"{number}")
        return [f"{number}-3fa9c1d0" for number in self.queue]

    @property
    def llm_engine(self):
        return self

    def has_unfinished_requests(self):
        return bool(self.queue)

    def get_output(self):
        """A step of vLLM's core: a token of a request, and how many of its logits are NaN."""
        name = min(self.queue)
        nans = self.nans * (len(self.queue) == 1)
        outputs = [
            SimpleNamespace(request_id=f"{name}-3fa9c1d0", new_token_ids=[5], num_nans_in_logits=n)
            for n in (0, nans)
        ]
        return SimpleNamespace(outputs=outputs)

    def step(self):
        """The last request ends first, after a step in which none has ended."""
        self.engine_core.get_output()
        _, output = self.queue.popitem()
        output.finished = True
        return [SimpleNamespace(finished=False, outputs=[], request_id="0"), output]


class Student(nn.Module):
    def __init__(self, token=5.0):
        super().__init__()
        self.token = nn.Parameter(torch.tensor([token]))
        self.matrix = nn.Parameter(torch.arange(6.0).reshape(2, 3))


def opened(llm, **changes):
    record = {"engine": "vllm", "version": "0.32.0", "max_num_seqs": 7}
    values = dict(llm=llm, parameters=Parameters, context=64, dtype=torch.bfloat16, record=record)
    return VllmEngine(**{**values, **changes})


def sampler(llm, student=None, **options):
    weights = None if student is None else lambda: weights_as_saved(student)
    return VllmSampler(lambda: opened(llm), [END, END], weights, **options)


def merged(chunks):
    return {place: completion for chunk in chunks for place, completion in chunk.items()}


def test_each_request_has_the_seed_of_its_place():
    llm = StandIn()
    sampler(llm).sample(PROMPTS, DECODING, seed=3)
    sampler(llm).sample(PROMPTS, DECODING, seed=4)
    seeds = [[request.seed for request in parameters] for _, parameters in llm.requests]
    assert seeds[0] == [seed_of(3, "request", place) for place in range(3)]
    assert len({*seeds[0], *seeds[1]}) == 6


def test_batches_are_one_queue_and_each_is_sampled_as_it_is_alone():
    llm, alone, student = StandIn(), StandIn(), Student()
    batches = [SamplerPrompts(PROMPTS, 3), SamplerPrompts([], 5), SamplerPrompts(PROMPTS[:2], 4)]
    together = merged(sampler(llm, student).sample_chunks(batches, DECODING))
    each = [sampler(alone).sample(b.prompts, DECODING, b.seed) for b in batches]
    assert [together[place] for place in range(5)] == sum(each, [])
    ((_, parameters),) = llm.requests
    assert [request.seed for request in parameters] == [
        seed_of(seed, "request", place)
        for seed, count in ((3, 3), (4, 2))
        for place in range(count)
    ]
    assert llm.calls == ["start", "update", "finish", "reset", "generate"]


def test_what_has_finished_is_not_asked_again_and_the_rest_keeps_its_seeds():
    llm, batches = StandIn(), [SamplerPrompts(PROMPTS, 3), SamplerPrompts(PROMPTS[:2], 4)]
    vllm = sampler(llm)
    whole = merged(vllm.sample_chunks(batches, DECODING))
    rest = merged(vllm.sample_chunks(batches, DECODING, finished={0, 2, 4}))
    assert rest == {place: whole[place] for place in (1, 3)}
    assert [request.seed for request in llm.requests[-1][1]] == [
        seed_of(3, "request", 1),
        seed_of(4, "request", 0),
    ]
    unopened = VllmSampler(lambda: pytest.fail("an engine was started for nothing"), [END])
    assert list(unopened.sample_chunks(batches, DECODING, range(5))) == []


def test_a_request_has_the_sampling_parameters_and_no_other_truncation():
    llm = StandIn()
    sampler(llm).sample(PROMPTS[:1], DECODING, seed=0)
    ((prompts, (parameters,)),) = llm.requests
    assert prompts == [{"prompt_token_ids": [1, 2]}]
    assert (parameters.temperature, parameters.top_p, parameters.max_tokens) == (0.7, 0.95, 8)
    assert parameters.top_k == 0 and parameters.ignore_eos and parameters.stop_token_ids == [END]


def test_the_students_present_weights_are_sampled_at_every_call():
    llm, student = StandIn(), Student(5.0)
    vllm = sampler(llm, student)
    drawn = []
    for value in (5, 6, 7):
        with torch.no_grad():
            student.token.fill_(value)
        drawn.append(vllm.sample(PROMPTS, DECODING, seed=0)[0].ids[0])
    assert drawn == [5, 6, 7]
    assert llm.calls == ["start", "update", "finish", "reset", "generate"] * 3
    assert llm.version == "3"


def test_the_engine_gets_every_weight_in_its_own_type_and_the_files_are_gone():
    llm, student = StandIn(), Student()
    sampler(llm, student).sample(PROMPTS, DECODING, seed=0)
    assert {n: (v.shape, v.dtype) for n, v in llm.weights.items()} == {
        "token": ((1,), torch.bfloat16),
        "matrix": ((2, 3), torch.bfloat16),
    }
    assert torch.equal(llm.weights["matrix"].float(), student.matrix.detach())
    assert not any(file.exists() or file.parent.exists() for file in llm.files)


def test_weights_that_are_too_many_for_one_file_come_in_several():
    llm, student = StandIn(), Student()
    sampler(llm, student, delivery=WeightDelivery(part_bytes=1)).sample(PROMPTS, DECODING, seed=0)
    assert llm.calls == ["start", "update", "update", "finish", "reset", "generate"]
    assert llm.weights.keys() == {"token", "matrix"}


def test_a_checkpoint_is_sampled_as_it_is():
    llm = StandIn()
    sampler(llm).sample(PROMPTS, DECODING, seed=0)
    assert llm.calls == ["generate"]


def test_a_cache_that_was_not_reset_is_an_error_and_nothing_is_sampled():
    llm = StandIn(resets=False)
    with pytest.raises(RuntimeError, match=r"prefix cache(.|\n)*Hint"):
        sampler(llm, Student()).sample(PROMPTS, DECODING, seed=0)
    assert "generate" not in llm.calls


@pytest.mark.parametrize("finish", ["stop", "length"])
def test_a_completion_says_how_it_ended(finish):
    drawn = sampler(StandIn(finish)).sample(PROMPTS, DECODING, seed=0)
    assert drawn == [Completion((5, length, END), finish) for length in (2, 1, 2)]


def test_completions_are_reported_as_they_end_and_returned_in_the_prompts_order():
    llm, reported = StandIn(), []
    vllm = sampler(llm)
    vllm.on_finish = lambda place, completion: reported.append((place, completion, len(llm.queue)))
    drawn = vllm.sample(PROMPTS, DECODING, seed=0)
    assert [(place, waiting) for place, _, waiting in reported] == [(2, 2), (1, 1), (0, 0)]
    assert all(completion == drawn[place] for place, completion, _ in reported)


def test_only_what_the_model_ended_is_reported():
    vllm, reported = sampler(StandIn("length")), []
    vllm.on_finish = lambda *report: reported.append(report)
    vllm.sample(PROMPTS, DECODING, seed=0)
    assert not reported


def test_a_request_that_the_engine_gave_up_is_no_completion():
    with pytest.raises(RuntimeError, match="abort"):
        sampler(StandIn("abort")).sample(PROMPTS, DECODING, seed=0)


def test_a_nan_among_the_logits_is_an_error_with_prompt_and_position():
    """The first prompt's requests have had two tokens in each of three steps."""
    llm = StandIn(nans=3)
    untouched = llm.engine_core.get_output
    with pytest.raises(FloatingPointError, match="(?s)token 6 of a response to prompt 0.*Hint: "):
        sampler(llm).sample(PROMPTS, DECODING, seed=0)
    assert llm.engine_core.get_output is untouched


def test_a_response_that_the_engine_would_cut_short_is_refused():
    fits = SamplingParams(1.0, 1.0, 62)
    assert sampler(StandIn()).sample(PROMPTS, fits, seed=0)
    with pytest.raises(ValueError, match=r"65 tokens(.|\n)*64(.|\n)*Hint"):
        sampler(StandIn()).sample(PROMPTS, SamplingParams(1.0, 1.0, 63), seed=0)


def test_the_record_says_what_the_engine_is_and_how_often_it_was_synced():
    vllm = sampler(StandIn(), Student())
    assert vllm.record() == {"engine": "vllm", "started": False}
    for _ in range(2):
        vllm.sample(PROMPTS, DECODING, seed=0)
    record = vllm.record()
    assert record["max_num_seqs"] == 7 and record["version"] == "0.32.0"
    # The two weights of the student are a number and six, of two bytes each.
    assert record["weight_syncs"] == 2 and record["weight_gb"] == 2 * 7 * 2 / 1e9
    assert record["weight_way"] == "files" and record["weight_seconds"] > 0
    assert vllm.sync_values() == {"sync/gb": 14e-9, "sync/seconds": vllm.delivered.seconds}
    assert "place" in record["request_seeds"]


def test_the_engine_starts_once_and_only_when_something_is_sampled():
    started = []
    vllm = VllmSampler(lambda: started.append(1) or opened(StandIn()), [END])
    assert not started
    vllm.sample(PROMPTS, DECODING, seed=0)
    vllm.sample(PROMPTS, DECODING, seed=1)
    assert len(started) == 1


def test_beside_a_trainer_the_engine_sleeps_from_call_to_call_and_wakes_to_new_weights():
    llm, student = StandIn(), Student(5.0)
    vllm = sampler(llm, student, sleeps=True)
    drawn = []
    for value in (5, 6, 7):
        with torch.no_grad():
            student.token.fill_(value)
        drawn.append(vllm.sample(PROMPTS, DECODING, seed=0)[0].ids[0])
        assert llm.in_memory == set()
    assert drawn == [5, 6, 7]
    synced, sampled = ["start", "update", "finish", "reset"], ["generate", "sleep"]
    woken = ["wake weights", *synced, "wake kv_cache", *sampled]
    assert llm.calls == [*synced, *sampled, *woken, *woken]


def test_an_engine_whose_sampling_fails_gives_its_memory_back_too():
    llm = StandIn("abort")
    with pytest.raises(RuntimeError, match="abort"):
        sampler(llm, Student(), sleeps=True).sample(PROMPTS, DECODING, seed=0)
    assert llm.in_memory == set()


def test_an_engine_that_has_a_device_of_its_own_stays_awake():
    llm = StandIn()
    sampler(llm, Student()).sample(PROMPTS, DECODING, seed=0)
    assert llm.in_memory == {"weights", "kv_cache"}
