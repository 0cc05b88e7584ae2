"""Whether jobs fit a GPU: against arithmetic by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest

from geosd.costs.assumptions import DEFAULTS, GPUS, Assumptions
from geosd.costs.fitting import (
    FittingEngineShare,
    fitting_gpus,
    parts_not_fitting,
    smallest_fitting_gpu,
)
from geosd.costs.update_operations import UpdateOperationsSize
from geosd.costs.workload import (
    KfacWorkload,
    ModelWorkload,
    SamplingWorkload,
    StoredWeightsWorkload,
    TrainingWorkload,
    WorkloadGpus,
)
from geosd.reporting.plan_tables import plan_fitting_table

N = 8_190_735_360  # of Qwen3-8B, counted from the released weights
CACHE = 36 * 2 * 8 * 128 * 2  # bytes a token: 36 layers, 8 heads of 128 for keys and for values
GEOSD = TrainingWorkload(
    625,
    UpdateOperationsSize(8, 4096),
    4096,
    True,
    {"teacher", "anchor"},
    KfacWorkload(16, 1 / 8, "float32"),
    True,
    1024,
    1,
)


def work(gpus, inference, **jobs):
    requests = dict.fromkeys(("pool", "evaluate", "evaluate_pi_0", "states"), WorkloadGpus(1))
    return ModelWorkload(
        "qwen3-8b",
        {"pool": 1, "train": 1, "evaluate": 1, **jobs},
        {"train": WorkloadGpus(gpus, inference), **requests},
        SamplingWorkload(100, 4096),
        SamplingWorkload(100, 8192),
        {"geosd": GEOSD},
        StoredWeightsWorkload(2, 1, 1),
    )


def needs(gpus, inference, memory=0.6, devices=1, **jobs):
    found = fitting_gpus(
        work(gpus, inference, **jobs), FittingEngineShare(memory, devices), DEFAULTS
    )
    return {need.part: need for need in found}


def test_a_worker_must_hold_its_models_beside_vllms_share():
    # pi_0, the anchor and the student, 2 N each, in the 40 percent that vLLM leaves.
    assert needs(3, 1)["worker"].bytes == pytest.approx(3 * 2 * N / 0.4)
    # With a small share that share decides: weights and the caches of eight responses.
    engine = 2 * N + 8 * (256 + 4096) * CACHE
    assert needs(3, 1, memory=0.2)["worker"].bytes == pytest.approx(engine / 0.2)


def test_a_gpu_that_samples_alone_must_hold_the_weights_and_one_response():
    found = needs(3, 1)["pool, evaluate"]
    assert found.bytes == pytest.approx((2 * N + (256 + 8192) * CACHE) / 0.9)
    assert needs(3, 1, devices=2)["pool, evaluate"].bytes == pytest.approx(found.bytes / 2)


def test_states_are_surveyed_beside_the_engine():
    own = 2 * N + 2 * 1024 * 151_936 * (4 + 4 + 2)
    assert "states" not in needs(3, 1)
    assert needs(3, 1, states=1)["states"].bytes == pytest.approx(max(own / 0.4, 0))


def test_trainers_with_sixteen_bytes_a_parameter_shared_by_four_fit_80_gb_and_by_two_do_not():
    h100 = GPUS["h100"].memory
    two, four = needs(3, 1)["trainer"], needs(5, 1)["trainer"]
    assert (two.gpus, four.gpus) == (2, 4)
    assert two.bytes > h100 > four.bytes > 16 * N / 4 / DEFAULTS.usable
    # Of two, all tensors of an update traced at its peak were 84.4 GB; the plan is above that.
    assert two.bytes * DEFAULTS.usable == pytest.approx(86.2e9, rel=0.01)


def test_a_job_without_gpus_needs_none():
    cpu = replace(work(0, 0), gpu_requests=dict.fromkeys(work(0, 0).gpu_requests, WorkloadGpus(0)))
    assert fitting_gpus(cpu, FittingEngineShare(0.6, 1), DEFAULTS) == []


def test_the_smallest_gpu_is_that_of_least_memory():
    assert smallest_fitting_gpu(20e9) == "a10" and smallest_fitting_gpu(25e9) == "4090"
    assert smallest_fitting_gpu(82e9) == "h100" and smallest_fitting_gpu(1e12) is None


def test_gpus_have_the_memory_of_their_names():
    gigabytes = {"4090": 24, "5090": 32, "a100-40": 40, "a100": 80, "h100": 80, "h200": 141}
    for name, expected in gigabytes.items():
        assert GPUS[name].memory / 2**30 == pytest.approx(expected, rel=0.01), name
    assert Assumptions(gpu="h100", gpu_gb=40).device.memory == 40 * 2**30
    assert Assumptions(gpu="h100", gpu_gb=40).device.flops == GPUS["h100"].flops
    with pytest.raises(ValueError, match="gpu_gb is 0.*\nHint:"):
        Assumptions(gpu_gb=0)


def test_the_table_says_which_part_is_too_large_and_for_which_model():
    share = FittingEngineShare(0.6, 1)
    assumed = Assumptions(gpu="h100")
    found = {
        "a": fitting_gpus(work(3, 1), share, assumed),
        "b": fitting_gpus(work(6, 2), share, assumed),
    }
    lines = plan_fitting_table(found, assumed).splitlines()
    assert "h100 has 86" in lines[0]
    rows = {cells[0]: cells[2:] for cells in (line.strip("| ").split(" | ") for line in lines[2:6])}
    rows = {name.strip(): [cell.strip() for cell in cells] for name, cells in rows.items()}
    assert rows["trainer"] == ["TOO SMALL/fits", "h200/h100"]
    assert rows["worker"] == ["TOO SMALL/fits", "h200/h100"]
    assert rows["pool, evaluate"] == ["fits", "a10"]
    assert "Hint: not every job fits a GPU of 86 GB; docs/gpu.md" in lines[-2]
    assert {model for model, _ in parts_not_fitting(found, assumed)} == {"a"}
