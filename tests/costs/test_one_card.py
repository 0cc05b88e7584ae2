"""Memory of a GPU that trains, samples and scores, with LoRA and without."""

from dataclasses import replace

import pytest
import torch
from torch import nn

from geosd.cli.training_workloads import training_workload_share
from geosd.costs.assumptions import DEFAULTS
from geosd.costs.gpu_memory import (
    engine_share,
    one_card_memory,
    total_gpu_memory,
    training_gpu_memory,
)
from geosd.costs.memory_and_disk import GB, memory_of_kv_token
from geosd.costs.update_operations import UpdateOperationsSize, update_projection_sizes
from geosd.costs.workload import KfacWorkload, LoraWorkload, TrainingWorkload, WorkloadGpus
from geosd.models.architectures import architecture
from geosd.optim.factor_sizes import adapter_factor_bytes, adapter_factor_parameters, factor_bytes
from geosd.optim.layer_selection import PROJECTIONS

SMALL, LARGE = architecture("qwen3-1.7b"), architecture("qwen3-8b")
GEOSD = TrainingWorkload(
    steps=375,
    update=UpdateOperationsSize(8, 4096),
    cap=4096,
    generates=True,
    needs={"teacher", "anchor"},
    kfac=KfacWorkload(16, 0.125, "float32"),
    recompute=True,
    chunk=1024,
    microbatch=1,
)
LORA = replace(GEOSD, lora=LoraWorkload(16, PROJECTIONS))
BETWEEN, PEAK = 37.4, 41.5
"""GB of Qwen3-1.7B with GeoSD on one GPU, traced by FakeTensorMode: between steps, and at most.

The trace has one response of 4,096 tokens, so no gradients lie there in its forward pass, and no
engine.
"""


def named(parts):
    return {part.name: part.bytes / GB for part in parts}


def test_a_training_on_one_gpu_keeps_what_a_trace_of_it_kept():
    training = named(one_card_memory(SMALL, GEOSD, DEFAULTS).training)
    passes = ("bf16 weights of a pass", "inputs of the blocks", "activations of one block")
    of_passes = sum(training[name] for name in (*passes, "logits", "engine asleep"))
    assert sum(training.values()) - of_passes == pytest.approx(BETWEEN, rel=0.01)
    without_engine = sum(training.values()) - training["engine asleep"]
    assert PEAK <= without_engine <= PEAK + training["gradients"]


def test_a_gpu_that_does_all_is_as_full_as_the_fuller_of_its_two_works():
    for training in (GEOSD, LORA):
        both = one_card_memory(SMALL, training, DEFAULTS)
        planned = training_gpu_memory(SMALL, training, WorkloadGpus(1), DEFAULTS)
        assert total_gpu_memory(planned) == max(map(total_gpu_memory, both))
        sampling, trains = map(named, both)
        assert "gradients" not in sampling
        assert "weights that sample" not in trains and "KV cache" not in trains


class Block(nn.Module):
    """Matrices of LoRA at one projection, named as peft names them."""

    def __init__(self, inputs, outputs, rank):
        super().__init__()
        self.lora_A = nn.ModuleDict({"default": nn.Linear(inputs, rank, bias=False)})
        self.lora_B = nn.ModuleDict({"default": nn.Linear(rank, outputs, bias=False)})


@pytest.mark.parametrize("targets", [("q_proj",), ("k_proj", "v_proj", "down_proj"), PROJECTIONS])
@pytest.mark.parametrize(("rank", "blocks"), [(16, 16), (8, 16), (24, 7)])
def test_adapters_are_counted_as_a_model_with_their_matrices(targets, rank, blocks):
    sizes = replace(update_projection_sizes(SMALL), layers=2)
    with torch.device("meta"):
        model = nn.Module()
        model.layers = nn.ModuleList(nn.Module() for _ in range(sizes.layers))
        for name, inputs, outputs in sizes.projections():
            layer, projection = name.split(".")
            if projection in targets:
                setattr(model.layers[int(layer)], projection, Block(inputs, outputs, rank))
    parameters = sum(each.numel() for each in model.parameters())
    assert adapter_factor_parameters(sizes, rank, targets) == parameters
    for storage in ("float32", "bfloat16"):
        kept = factor_bytes(model, blocks, storage)
        assert adapter_factor_bytes(sizes, rank, targets, blocks, storage) == kept


def test_with_lora_no_weight_but_the_adapters_has_gradients_moments_or_copies():
    trained = adapter_factor_parameters(update_projection_sizes(SMALL), 16, PROJECTIONS)
    parts = named(one_card_memory(SMALL, LORA, DEFAULTS).training)
    assert parts["frozen weights"] == 4 * SMALL.parameters / GB
    of_adapters = ("adapters", "adapters of anchor and pi_0", "gradients", "moments")
    assert sum(parts[name] for name in of_adapters) == pytest.approx(20 * trained / GB)
    full = named(one_card_memory(SMALL, GEOSD, DEFAULTS).training)
    assert sum(parts.values()) < 0.5 * sum(full.values())


@pytest.mark.parametrize(("training", "card"), [(GEOSD, 80e9), (LORA, 80e9), (LORA, 24e9)])
def test_the_engine_gets_what_the_trainer_leaves(training, card):
    share = engine_share(SMALL, training, DEFAULTS, card)
    sampling = named(one_card_memory(SMALL, training, DEFAULTS).sampling)
    engine = sampling.pop("weights that sample") + sampling.pop("KV cache")
    assert sum(sampling.values()) + share * card / GB == pytest.approx(DEFAULTS.usable * card / GB)
    assert share * card / GB > min(engine, 2 * SMALL.parameters / GB)


def test_a_training_that_cannot_fit_is_refused_by_name():
    refused = r"Qwen3-1.7B does not fit one GPU of 24 GB: training needs 46\.\d GB of the 21.6"
    with pytest.raises(ValueError, match=f"(?s){refused}.*Hint:.*training.lora"):
        engine_share(SMALL, GEOSD, DEFAULTS, 24e9)
    with pytest.raises(ValueError, match=r"(?s)Qwen3-8B does not fit.*Hint: ((?!lora).)*$"):
        engine_share(LARGE, LORA, DEFAULTS, 24e9)


def test_a_gpu_without_room_for_one_response_is_refused():
    """Trained on short responses it fits; what it samples is as long as the cache is large."""
    training = replace(LORA, kfac=None, recompute=True, chunk=1, cap=200_000, microbatch=1)
    sampling, trains = map(total_gpu_memory, one_card_memory(SMALL, training, DEFAULTS))
    one = sampling - 7 * (200_000 + DEFAULTS.prompt) * memory_of_kv_token(SMALL)
    assert one < sampling
    card = 1.01 * max(one, trains) / DEFAULTS.usable
    assert engine_share(SMALL, training, DEFAULTS, card) > 0
    with pytest.raises(ValueError, match="does not fit one GPU"):
        engine_share(SMALL, training, DEFAULTS, 0.98 * max(one, trains) / DEFAULTS.usable)


def test_a_training_takes_the_share_that_is_left_and_no_more_than_it_asks_for():
    settings = {
        "steps": 375,
        "problems": 8,
        "group": 8,
        "response_tokens": 4096,
        "recompute": True,
        "chunk": 1024,
        "microbatch": 1,
        "lora": None,
        "teacher": "live",
        "top_k": 1024,
        "objective": {"name": "geosd"},
        "optimiser": {
            "rule": "kfac",
            "kfac": {"blocks": 16, "subsample": 0.125, "storage": "float32"},
        },
        "rollout": {"engine": "vllm", "memory": 0.6},
    }
    on_80 = training_workload_share(settings, "qwen3-1.7b", 80e9)
    assert on_80["rollout"]["memory"] == engine_share(SMALL, GEOSD, DEFAULTS, 80e9) < 0.6
    assert {**on_80, "rollout": settings["rollout"]} == settings
    assert training_workload_share(settings, "qwen3-1.7b", 143e9)["rollout"]["memory"] == 0.6
    with pytest.raises(ValueError, match="Qwen3-8B does not fit one GPU of 80 GB"):
        training_workload_share(settings, "qwen3-8b", 80e9)
    for unknown in (("my-own", settings), ("qwen3-8b", {"rollout": {"engine": "transformers"}})):
        assert training_workload_share(unknown[1], unknown[0], 24e9) == unknown[1]
