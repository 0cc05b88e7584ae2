"""Whole steps of every method on a pretended GPU: nothing mixes devices, and few things wait."""

from __future__ import annotations

import json
from importlib.util import find_spec

import pytest
import torch
from training.pretended_gpu import library

from geosd.training.arguments import training_arguments
from geosd.training.loop import train_step
from geosd.training.run import RunInputs, assemble_run

pytestmark = pytest.mark.slow

ADAMW = {"rule": "adamw", "inner": None, "kfac": None}
BY_MICROBATCH = {"precision": "bfloat16", "microbatch": 1, "recompute": True}
LORA = {"lora": {"rank": 2, "alpha": 4.0, "targets": ["q_proj", "v_proj", "down_proj"]}}
METHODS = ("sft", "grpo", "fwdkl", "revkl", "jsd", "tropd", "tip")
CASES = {
    **{name: {"objective": {"name": name}, "optimiser": ADAMW} for name in METHODS},
    "geosd": {},
    "geosd, measured": {"diagnose_every": 1},
    "geosd, a response a pass": BY_MICROBATCH,
    "geosd, adapters": {**BY_MICROBATCH, **LORA},
}
ADAPTERS = pytest.param(
    "geosd, adapters",
    marks=pytest.mark.skipif(find_spec("peft") is None, reason="peft is not installed"),
)
NAMES = [*(name for name in CASES if "adapters" not in name), ADAPTERS]
FAULTS = {"loss": {}, "K-FAC": {}, "measurement": {"diagnose_every": 1}}
WAITS_A_CHUNK = 4
"""Of the union support, whose size the host has to know."""
OTHER_WAITS = 8
"""Of a step: a pass of each of three models (transformers looks for packed rows), the log, the
gradient's norm, K-FAC's two checks, and the size of the update."""


def changed(settings, changes):
    """Settings with `changes`; no measurement, unless they ask for one."""
    return {**settings, "diagnose_every": 1000, **changes}


@pytest.fixture(scope="module")
def found(tiny, settings_of_steps, tmp_path_factory):
    folder = tmp_path_factory.mktemp("pretended_gpu")
    cases = {
        name: {"settings": changed(settings_of_steps, changes), "fault": None}
        for name, changes in CASES.items()
        if name != "geosd, adapters" or find_spec("peft")
    }
    for fault, changes in FAULTS.items():
        given = changed(settings_of_steps, changes)
        cases[f"fault in {fault}"] = {"settings": given, "fault": fault}
    (folder / "cases.json").write_text(json.dumps({"tiny": str(tiny), "cases": cases}))
    library.run(library.compiled(folder), "whole_steps.py", str(folder))
    return json.loads((folder / "found.json").read_text())


@pytest.mark.parametrize("name", NAMES)
def test_no_step_mixes_devices(name, found):
    assert found[name]["device"] == "cuda:0"
    assert found[name]["kernels"] > 100
    assert found[name]["mixed"] == []


@pytest.mark.parametrize("name", ["geosd", "fwdkl", "grpo"])
def test_the_losses_are_those_of_the_cpu(name, found, tiny, settings_of_steps):
    settings = changed(settings_of_steps, CASES[name])
    files = RunInputs(settings, tiny / "base", tiny / "train.jsonl", tiny / "pool.jsonl", 0)
    torch.set_num_threads(1)
    run, args = assemble_run(files), training_arguments(settings)
    losses = [train_step(run, args, step)["loss/total"] for step in range(2)]
    assert found[name]["losses"] == pytest.approx(losses, rel=1e-4, abs=1e-6)


@pytest.mark.parametrize("name", [*METHODS, "geosd"])
def test_a_step_waits_for_the_device_a_few_times(name, found, settings_of_steps):
    waits = found[name]["waits"]  # all of its positions are one chunk
    responses = settings_of_steps["problems"] if name == "tip" else 0  # TIP chooses within each
    assert sum(waits.values()) <= OTHER_WAITS + WAITS_A_CHUNK + responses, waits


@pytest.mark.parametrize("fault", FAULTS)
def test_a_planted_fault_is_found(fault, found):
    assert found[f"fault in {fault}"]["mixed"]
