"""A copy of the project with a study of seconds, for three nodes of two GPUs each."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parents[2]
MODEL, VARIANTS, STEPS = "mini-qwen3", ("fwdkl", "geosd"), 50

# A training takes a whole node and runs as two processes, two evaluations share a node.
GPUS = {"train": 2, "evaluate": 1}
SITE: dict[str, Any] = {
    "account": None,
    "gpu_model": "h100",
    "cpus_per_gpu": 1,
    "jobs": 100,
    "trainings": 100,
    "max_minutes": 1440,
    "check_seconds": 2,
    "partitions": {
        "cpu": {"max_runtime": 1440},
        "gpu": {"max_runtime": 1440, "max_gpu": 2},
    },
}


def copy_project(target: Path) -> Path:
    """Copy the project, and give it the small study under the name quick."""
    copy_files(target)
    shrink(target / "params.yaml")
    (target / "profiles/slurm/site.yaml").write_text(yaml.safe_dump(SITE))
    return target


def copy_files(target: Path) -> None:
    """Copy what git knows of the project."""
    listed = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(listed, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    for name in names.splitlines():
        if (ROOT / name).exists() or (ROOT / name).is_symlink():
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, target / name, follow_symlinks=False)


def shrink(path: Path) -> None:
    """Make study quick one of seconds: two variants, one seed, a base hardly trained."""
    params = yaml.safe_load(path.read_text())
    base = params["models"][MODEL]["base"]
    base |= {"source": "pretrained", "checkpoint": None}
    params["studies"]["miniature"]["draws"] = 1  # several need shipped base models
    base["pretraining"] |= {"steps": 120, "weight_decay": 0.01}
    for rule, gpus in GPUS.items():
        params["resources"]["default"][rule] |= {"gpus": gpus}
    quick = params["studies"]["quick"]
    quick |= {"methods": list(VARIANTS), "seeds": [0], "outputs": ["table_main"]}
    quick["data"] |= {"train": 40, "select_train": 4, "select_validation": 4}
    quick["data"] |= {"test_id": 8, "test_per_benchmark": 4}
    quick["pool"] |= {"rollouts": 8, "keep": 8}
    quick["training"] |= {"steps": STEPS, "save_every": 5}
    quick["evaluation"] |= {"samples": 8, "pass_k": [1, 2]}
    quick["rollout"] = {**quick.get("rollout", {}), "sequences": 4}  # so that jobs have many chunks
    path.write_text(yaml.safe_dump(params, sort_keys=False))


def results(project: Path) -> dict[str, bytes]:
    """What must come out the same: the pool, every weight, sample and score."""
    folder = project / "results"
    found = [
        *folder.glob("train/*/*/*/model.safetensors"),
        *folder.glob("evaluate/*/*/*/samples.jsonl"),
        *folder.glob("pool/*/pool.jsonl"),
        folder / "quick/analyse/scores.csv",
    ]
    assert len(found) == 2 * len(VARIANTS) + 2, found
    return {str(path.relative_to(project)): path.read_bytes() for path in found}


def forget(project: Path, pool: bool) -> None:
    """Remove what comes after the pool, and on request the pool."""
    jobs = ["train", "evaluate", *(["pool"] if pool else [])]
    for name in (*jobs, "quick/analyse", "quick/pages"):
        shutil.rmtree(project / "results" / name, ignore_errors=True)
    of_jobs = [f"{folder}/{job}" for folder in ("scratch", "logs/quick") for job in jobs]
    for name in ("figures/quick", "logs/slurm", *of_jobs):
        shutil.rmtree(project / name, ignore_errors=True)
