"""The check of vLLM's weights: with a stand-in for the engine, and where it is, vLLM itself."""

import importlib.util
import os
from types import SimpleNamespace

import gpu_weight_sync
import pytest
import torch
from safetensors.torch import load_file
from transformers import AutoModelForCausalLM

from geosd.models.architectures import Architecture
from geosd.sampling.vllm_sampler import VllmEngine

TINY = Architecture("tiny", "qwen3", 2, 64, 96, 4, 2, 32, 128, tied=True)


class StandIn:
    """An engine on a copy of a checkpoint, which samples token by token."""

    def __init__(self, folder, takes_weights):
        self.model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
        self.takes_weights, self.loading = takes_weights, {}
        self.llm_engine = SimpleNamespace(engine_core=SimpleNamespace(shutdown=lambda: None))

    def start_weight_update(self):
        self.loading = {}

    def update_weights(self, request):
        self.loading |= load_file(request["update_info"]["path"])

    def finish_weight_update(self, weight_version=None):
        if self.takes_weights:
            missing = self.model.load_state_dict(self.loading, strict=False)
            assert set(missing.missing_keys) <= {"lm_head.weight"} and not missing.unexpected_keys

    def reset_prefix_cache(self):
        return True

    @torch.no_grad()
    def generate(self, requests, sampling, use_tqdm):
        outputs = []
        for request in requests:
            ids, drawn = list(request["prompt_token_ids"]), []
            for _ in range(sampling.max_tokens):
                log_p = self.model(torch.tensor([ids])).logits[0, -1].log_softmax(-1)
                ids.append(int(torch.multinomial(log_p.exp(), 1)))
                drawn.append({ids[-1]: SimpleNamespace(logprob=log_p[ids[-1]].item())})
            tokens = ids[len(request["prompt_token_ids"]) :]
            completion = SimpleNamespace(token_ids=tokens, logprobs=drawn)
            outputs.append(SimpleNamespace(outputs=[completion]))
        return outputs


@pytest.mark.parametrize("takes_weights", [True, False])
def test_an_engine_that_keeps_the_old_weights_is_seen(monkeypatch, takes_weights):
    def start(folder, *, live, sequences, precision, memory):
        assert live
        llm = StandIn(folder, takes_weights)
        return VllmEngine(llm, SimpleNamespace, 512, torch.float32, {"version": "0"})

    monkeypatch.setattr(gpu_weight_sync, "start_vllm", start)
    monkeypatch.setattr(gpu_weight_sync, "RESPONSE", 6)
    found = gpu_weight_sync.weight_sync(TINY, torch.device("cpu"), "float32")
    assert found["gap_before"] > 0.01
    assert (found["gap_after"] < 1e-4) == takes_weights
    assert found["tokens"] == 24 and found["s"] > 0


@pytest.mark.skipif(
    importlib.util.find_spec("vllm") is None,
    reason="vLLM is not installed here. Hint: `make test-vllm` runs this file where it is.",
)
def test_an_installed_vllm_takes_the_new_weights():
    os.environ["VLLM_CPU_OMP_THREADS_BIND"] = "nobind"
    found = gpu_weight_sync.weight_sync(TINY, torch.device("cpu"), "float32", memory=0.1)
    assert found["gap_after"] < 1e-4
    assert found["gap_before"] > 100 * found["gap_after"]
