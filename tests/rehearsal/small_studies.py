"""Four studies of the paper, small enough for two cores: what differs from params.yaml."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml
from paper_models import PUBLISHED

from geosd.config import load

STUDIES = ("paper_pilot", "paper_ablation", "paper_ladder", "paper")  # the order of docs/cluster.md
LEFT_OUT = "qwen3-4b"
"""The ladder's model without a stand-in: it is Qwen3-1.7B in other widths."""
STEPS, SAVED_AFTER = 4, 2
# AdamW on a reward and K-FAC on a teacher; the ablation has FwdKL too. All nine methods, and
# each architecture: tests/cli/test_paper_models.py.
METHODS = ["pi_0", "grpo", "geosd"]
SECTIONS: dict[str, dict[str, Any]] = {
    "data": {
        "train": 4,
        "select_train": 2,
        "select_validation": 2,
        "test_id": 2,
        "test_per_benchmark": 1,
    },
    "pool": {"rollouts": 8, "keep": 4, "response_tokens": 16},
    "training": {
        "steps": STEPS,
        "warmup": 1,
        "problems": 2,
        "group": 4,
        "response_tokens": 16,
        "learning_rate": 1.0e-3,
        "anchor_every": 2,
        "save_every": SAVED_AFTER,
        "diagnose_every": 2,
        "final_rollouts": 2,
    },
    "evaluation": {"samples": 2, "coverage": 4, "pass_k": [1, 2], "response_tokens": 16},
}
SNAPSHOTS = [1, 3]

MOST_TENSOR_PARALLEL = 2
# The cluster that `make rehearse` starts.
NODES, GPUS_OF_A_NODE, MEGABYTES_OF_A_NODE = 3, 4, 7000
LIMITS = {"max_runtime": 1440, "max_mem_mb": MEGABYTES_OF_A_NODE}
SITE: dict[str, Any] = {
    "account": None,
    "gpu_model": "h100",
    "cpus_per_gpu": 1,
    "jobs": 8,
    "trainings": 2,
    "max_minutes": 1440,
    "check_seconds": 2,
    "partitions": {"cpu": LIMITS, "gpu": {**LIMITS, "max_gpu": GPUS_OF_A_NODE}},
}


BOUNDS = {
    "jobs": SITE["jobs"],
    "trainings": SITE["trainings"],
    "gpus": NODES * GPUS_OF_A_NODE,
    "megabytes": NODES * MEGABYTES_OF_A_NODE,
}
"""What may be in use at once."""


def configured(study: str) -> tuple[str, str]:
    """What a driver's `--config` says of a study.

    Jobs start whatever the check before them says: it looks for the lock of GPU nodes.
    """
    return f"study={study}", "allow_missing=true"


def resources(nodes: int, tensor_parallel: int) -> dict[str, Any]:
    """What a model's jobs ask for: two processes train, one or two more are the worker.

    Args:
        nodes: Of a training, as many as the true one has.
        tensor_parallel: Devices that the sampler shares a model out over.
    """
    small = {"mem_mb": 2000, "minutes": 30}
    engine = 1500 * tensor_parallel  # vLLM's workers: without memory they are killed
    sampled = {**small, "mem_mb": 2000 + engine, "gpus": tensor_parallel}
    train = {"gpus": 2 + tensor_parallel, "inference_gpus": tensor_parallel, "nodes": nodes}
    return {
        "base": {**small, "gpus": 0},
        **{rule: {**sampled} for rule in ("pool", "evaluate", "states")},
        "train": {**train, "mem_mb": 4000 + engine, "minutes": 30},
        "alignment": {**small, "gpus": 1},
    }


def shrink(project: Path, raw: Path, checkpoints: Path, engine: str) -> None:
    """Make the studies of a copy of the project small, and give it the test cluster's site.

    Args:
        project: The copy.
        raw: Folder of the raw files.
        checkpoints: Folder of the stand-ins for the released checkpoints.
        engine: What samples.
    """
    values = yaml.safe_load((project / "params.yaml").read_text())
    values["study"] = "paper"
    # A study that is never run would keep the weights that it shares.
    values["studies"] = {name: values["studies"][name] for name in reversed(STUDIES)}
    paper, ablation = values["studies"]["paper"], values["studies"]["paper_ablation"]
    values["studies"]["paper_ladder"]["models"].remove(LEFT_OUT)
    paper |= {"methods": METHODS, **SECTIONS}
    paper["data"] = {**SECTIONS["data"], "raw": str(raw)}
    paper["rollout"] = {"engine": engine, "sequences": 16, "memory": 0.06}
    for study in values["studies"].values():
        study["seeds"] = [0]
    for variant in ablation["variants"].values():
        variant["training"]["snapshots"] = SNAPSHOTS
    true = load(project / "params.yaml")
    for name in PUBLISHED:
        model = values["models"][name]
        model["base"] = {"checkpoint": {"folder": str(checkpoints / name)}}
        devices = model.get("rollout", {}).get("tensor_parallel", 1)
        if devices > 1:
            devices = min(devices, MOST_TENSOR_PARALLEL)
            model["rollout"] = {"tensor_parallel": devices}
        nodes = true.resources_of(name).train.nodes
        values["resources"][name] = resources(nodes, devices)
    (project / "params.yaml").write_text(yaml.safe_dump(values, sort_keys=False))
    (project / "profiles/slurm/site.yaml").write_text(yaml.safe_dump(SITE))
