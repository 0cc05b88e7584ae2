"""Rules that have one model compute on the GPU that they ask for: a pretended one."""

from __future__ import annotations

import json

import pandas as pd
import pytest
import yaml
from training.pretended_gpu import library

from geosd.cli import states

pytestmark = pytest.mark.slow

RULES = ("pool", "evaluate", "states", "alignment", "token_probabilities")


@pytest.fixture(scope="module")
def folder(small, tmp_path_factory):
    return tmp_path_factory.mktemp("rules_on_gpu")


@pytest.fixture(scope="module")
def params(small, folder):
    """The small study, sampled without a compiled step, which is a CPU's alone."""
    values = yaml.safe_load(small.shared["params"].read_text())
    quick = values["studies"]["quick"]
    quick |= {"methods": ["pi_0", "geosd"], "seeds": [0]}
    quick["rollout"] |= {"compile": False}
    quick["pool"]["response_tokens"] = 8
    quick["training"]["response_tokens"] = 8
    quick["training"]["snapshots"] = [2]
    quick["evaluation"] |= {"response_tokens": 8}
    path = folder / "params.yaml"
    path.write_text(yaml.safe_dump(values))
    return path


@pytest.fixture(scope="module")
def calls(small, folder, params):
    """The programs, with their arguments by name; each writes into a folder of its name."""
    student = small.trained(folder / "student", snapshots=[2], params=params)
    base, train = small.base, small.train
    own = {
        "pool": {"base": base, "problems": train},
        "evaluate": {
            "variant": "pi_0",
            "seed": 0,
            "checkpoint": base,
            "problems": small.folder / "data/test.jsonl",
        },
        "states": {"base": base, "problems": train, "pool": small.folder / "pool.jsonl"},
        "alignment": {
            "variant": "geosd",
            "seed": 0,
            "base": base,
            "checkpoint": student,
            "states": folder / "states/states.jsonl",
        },
        "token_probabilities": {
            "checkpoints": [base, student],
            "problems": train,
            "pool": small.folder / "pool.jsonl",
        },
    }
    shared = {"study": "quick", "model": "mini-qwen3", "params": params}
    return {
        name: {**shared, **given, "out": folder / name, "scratch": folder / f"{name}-scratch"}
        for name, given in own.items()
    }


@pytest.fixture(scope="module")
def found(folder, calls):
    (folder / "calls.json").write_text(json.dumps(calls, default=str))
    for call in calls.values():
        call["scratch"].mkdir()
        (call["scratch"] / "attempts.jsonl").touch()  # as the launcher does
    library.run(library.compiled(folder), "rules.py", str(folder))
    return json.loads((folder / "found.json").read_text())


@pytest.mark.parametrize("rule", RULES)
def test_every_layer_is_computed_on_the_gpu(rule, found):
    assert found[rule] == {"devices": ["cuda:0"], "mixed": []}


@pytest.mark.parametrize("rule", RULES)
def test_the_launchers_files_stay_in_the_scratch_folder(rule, found, calls):
    assert (calls[rule]["scratch"] / "attempts.jsonl").exists()


def test_states_are_those_of_the_cpu(found, calls, folder):
    other = {"out": folder / "states-cpu", "scratch": folder / "states-cpu-scratch"}
    states.main(**{**calls["states"], **other})
    on_gpu, on_cpu = (
        pd.read_csv(folder / name / "states.csv") for name in ("states", "states-cpu")
    )
    pd.testing.assert_frame_equal(on_gpu, on_cpu, rtol=1e-4, atol=1e-6)
