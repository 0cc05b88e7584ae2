"""The choice between engines."""

import os

import pytest
import torch

from geosd.models.load_and_save import save_model
from geosd.models.tiny_models import build_tiny_model
from geosd.problems.encoding import Encoding
from geosd.problems.miniature import MiniaturePrompts, build_miniature_tokenizer
from geosd.problems.search.corpora import VOCABULARY
from geosd.sampling import engines, vllm_sampler
from geosd.sampling.engines import build_sampler
from geosd.sampling.sampler import SamplingParams

TOKENIZER = build_miniature_tokenizer(VOCABULARY)
ENCODING = Encoding(TOKENIZER, MiniaturePrompts())
PROMPTS = [TOKENIZER(f"Q: {i} + {i} S:").input_ids for i in range(5)]
COLD = SamplingParams(0.0, 1.0, 6)
LAPTOP = {"engine": "transformers", "sequences": 3, "precision": "float32"}
CLUSTER = {
    "engine": "vllm",
    "sequences": 3,
    "tensor_parallel": 1,
    "precision": "float32",
    "memory": 0.1,
    "process": "own",
}


@pytest.fixture
def model():
    return build_tiny_model(
        "mini-qwen3-xs", len(TOKENIZER), ENCODING.pad_id, ENCODING.end_ids[0], seed=0
    ).eval()


def test_transformers_samples_a_checkpoint_as_it_does_the_model_that_was_saved(model, tmp_path):
    save_model(model, TOKENIZER, tmp_path)
    loaded = build_sampler(LAPTOP, tmp_path, ENCODING)
    given = build_sampler(LAPTOP, tmp_path, ENCODING, model=model)
    assert loaded.sample(PROMPTS, COLD, seed=0) == given.sample(PROMPTS, COLD, seed=0)


def test_transformers_samples_a_live_model_as_it_is(model, tmp_path):
    live = build_sampler(LAPTOP, tmp_path, ENCODING, model=model, live=True)
    before = live.sample(PROMPTS, COLD, seed=0)
    with torch.no_grad():
        model.lm_head.weight.copy_(model.lm_head.weight.flip(0))
    assert live.sample(PROMPTS, COLD, seed=0) != before


def test_the_record_of_transformers_says_version_and_rows(model, tmp_path):
    record = build_sampler(LAPTOP, tmp_path, ENCODING, model=model).record()
    assert record["engine"] == "transformers" and record["rows"] == 3 and record["version"]


def test_without_vllm_the_error_says_what_to_install_and_comes_at_once(
    model, tmp_path, monkeypatch
):
    monkeypatch.setattr(vllm_sampler.importlib.util, "find_spec", lambda name: None)
    hint = r"Hint: (.|\n)*installed-gpu(.|\n)*rollout\.engine"
    with pytest.raises(ModuleNotFoundError, match=hint):
        build_sampler(CLUSTER, tmp_path, ENCODING, model=model, live=True)


def test_an_engine_alone_on_a_gpu_takes_more_memory_than_with_a_model(model, monkeypatch):
    engine_options = []
    monkeypatch.setattr(engines, "require_vllm", lambda: None)
    monkeypatch.setattr(engines, "start_vllm", lambda *_, **options: engine_options.append(options))
    for gpu in (True, False):
        monkeypatch.setattr(torch.cuda, "is_available", lambda gpu=gpu: gpu)
        monkeypatch.setattr(torch.cuda, "is_bf16_supported", lambda **_: True)
        for trained in (None, model):
            sampler = build_sampler({**CLUSTER, "memory": 0.6}, "nowhere", ENCODING, model=trained)
            sampler._open_engine()
    assert [options.get("memory") for options in engine_options] == [None, 0.6, 0.6, 0.6]


@pytest.mark.parametrize("gpu", [True, False])
@pytest.mark.parametrize("process", ["own", "same"])
def test_on_a_gpu_weights_are_shared_and_an_engine_beside_a_trainer_sleeps(
    model, monkeypatch, gpu, process
):
    started = []
    monkeypatch.setattr(engines, "require_vllm", lambda: None)
    monkeypatch.setattr(engines, "start_vllm", lambda *_, **options: started.append(options))
    monkeypatch.setattr(torch.cuda, "is_available", lambda: gpu)
    settings = {**CLUSTER, "process": process, "tensor_parallel": 4, "precision": "bfloat16"}
    for beside_trainer in (True, False):
        options = {"model": model, "live": True, "beside_trainer": beside_trainer}
        sampler = build_sampler(settings, "nowhere", ENCODING, **options)
        sampler._open_engine()
        assert sampler.sleeps == started[-1]["sleeps"] == (gpu and beside_trainer)
        # A process cannot open a buffer of its own.
        assert sampler.delivery.by_memory == (gpu and process == "own")
        assert sampler.delivery.devices == 4
        assert {value.dtype for _, value in sampler.weights()} == {torch.bfloat16}
    alone = build_sampler(settings, "nowhere", ENCODING)
    alone._open_engine()
    assert not alone.sleeps and not started[-1]["sleeps"]


def test_one_process_drives_one_device(monkeypatch):
    monkeypatch.setattr(vllm_sampler, "require_vllm", lambda: None)
    with pytest.raises(ValueError, match=r"tensor_parallel 2(.|\n)*Hint"):
        vllm_sampler.start_vllm("nowhere", live=False, tensor_parallel=2, process="same")


@pytest.mark.parametrize(
    ("before", "device", "inside"),
    [(None, 0, None), ("4,5", 0, "4,5"), (None, 2, "2,3"), ("3,4,5,6", 2, "5,6")],
)
def test_vllm_sees_the_devices_of_the_worker_and_none_of_the_trainers(
    monkeypatch, before, device, inside
):
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    if before is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", before)
    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: True)
    monkeypatch.setattr(torch.cuda, "current_device", lambda: device)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 4)
    with vllm_sampler.visible_vllm_devices(2):
        assert os.environ.get("CUDA_VISIBLE_DEVICES") == inside
    assert os.environ.get("CUDA_VISIBLE_DEVICES") == before
