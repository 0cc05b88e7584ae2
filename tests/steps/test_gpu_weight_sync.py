"""The GPU check's look at vLLM's weights, on a CPU with a tiny model (`make test-vllm`)."""

import importlib.util
import os

import pytest
import torch

from geosd.models.published_architectures import Architecture

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        importlib.util.find_spec("vllm") is None,
        reason="vLLM is not installed here. Hint: `make test-vllm` runs this file where it is.",
    ),
]
TINY = Architecture("tiny", "qwen3", 2, 64, 96, 4, 2, 32, 128, tied=True)


def test_log_p_is_the_old_models_before_and_the_new_ones_after():
    from geosd.steps import gpu_weight_sync

    os.environ["VLLM_CPU_OMP_THREADS_BIND"] = "nobind"
    found = gpu_weight_sync.weight_sync(TINY, torch.device("cpu"), "float32", memory=0.1)
    assert found["gap_after"] < 1e-4
    assert found["gap_before"] > 100 * found["gap_after"]
    assert found["s"] > 0 and found["tokens"] == 128
