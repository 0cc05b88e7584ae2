"""The studies of one GPU, from the problems to their table: a stand-in model, a pretended GPU.

Everything but sizes, engine and the released checkpoint is as params.yaml has it: the one GPU of a
training's placement, LoRA, the modes of thinking, the outputs, and the profile of a machine without
SLURM.
"""

from __future__ import annotations

import csv
import importlib.util
import itertools
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from checkpoints import FEWER_HEADS, HEAD_WIDTH, NARROWER, documents, learn
from paper_models import load_narrow
from study import copy_files

from geosd.cli.plan import plan_gpu_needs, plan_model_workload
from geosd.config import load, resolve_study
from geosd.costs.assumptions import GPUS, Assumptions
from geosd.costs.fitting import FittingGpu
from geosd.costs.hours import hours_rows
from geosd.gpu_leases import FOLDER
from geosd.json_lines import read_jsonl
from geosd.models.load_and_save import save_model
from geosd.problems.records import Problem

MODEL = "qwen3-1.7b"
STEPS, CAP = 4, 16
SMALL = {
    "data": {"train": 4, "select_train": 2, "select_validation": 2, "test_id": 2},
    "pool": {"response_tokens": CAP},
    "training": {
        "steps": STEPS,
        "warmup": 1,
        "problems": 2,
        "group": 4,
        "response_tokens": CAP,
        "anchor_every": 2,
        "save_every": 2,
        "diagnose_every": 2,
        "final_rollouts": 2,
    },
    "evaluation": {"samples": 2, "pass_k": [1, 2], "response_tokens": CAP},
}


def shrunk(project: Path, raw: Path, study: str) -> None:
    """Make a study small, and let its model come from a folder; nothing else changes."""
    file = project / "params.yaml"
    values = yaml.safe_load(file.read_text())
    chain = {name: values["studies"][name] for name in ("one_gpu", study)}
    values |= {"study": study, "studies": chain}
    for section, small in SMALL.items():
        chain[study][section] = chain[study].get(section, {}) | small
    # Of a study that extends another, `data` may be the other's alone.
    chain[study]["data"] |= {"raw": str(raw), "test_per_benchmark": 1}
    chain[study]["rollout"] = chain[study].get("rollout", {}) | {"engine": "transformers"}
    values["models"][MODEL]["base"] = {"checkpoint": {"folder": str(project / "released")}}
    file.write_text(yaml.safe_dump(values, sort_keys=False))
    (project / "profiles/workstation/site.yaml").write_text("gpus: 1\n")


def run(project: Path, *command: str) -> str:
    environment = {**os.environ, "PYTHONPATH": str(project / "src")}
    environment |= {FOLDER: str(project / "leases")}
    environment.pop("CUDA_VISIBLE_DEVICES", None)
    done = subprocess.run(
        [sys.executable, "-m", *command],
        cwd=project,
        env=environment,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    return done.stdout + done.stderr


def stand_in(project: Path, shared: Path, study: str) -> None:
    """Write a narrow model that knows one right and one wrong answer to each problem."""
    run(project, "geosd", "data", "--study", study, "--out", "problems")
    problems = [
        problem
        for name in ("train", "test")
        for problem in read_jsonl(project / f"problems/{name}.jsonl", Problem)
    ]
    model, tokenizer = load_narrow(shared, MODEL, NARROWER, FEWER_HEADS, HEAD_WIDTH)
    learn(model, documents(model, tokenizer, problems, thinking=False))
    save_model(model.bfloat16(), tokenizer, project / "released")


def turns_on_the_gpu(project: Path) -> list[tuple[float, float]]:
    """Start and end of each job that had a GPU, by its own notes; each had the one there is."""
    turns = []
    for file in (project / "scratch").rglob("attempts.jsonl"):
        start, end = map(json.loads, file.read_text().splitlines())
        if start["gpus"]:
            assert start["gpus"] == "0"
            turns.append((start["time"], end["time"]))
    return sorted(turns)


@pytest.mark.slow
@pytest.mark.parametrize("study", ["one_gpu", "one_gpu_24gb"])
def test_a_study_of_one_gpu_comes_to_its_table(root, shared_data, tmp_path, study):
    if study == "one_gpu_24gb" and importlib.util.find_spec("peft") is None:
        pytest.skip("peft is not installed. Hint: make .venv/installed-lora")
    true = resolve_study(load(root / "params.yaml"), study)
    assert true.resources_of(MODEL).train.gpus == 1
    copy_files(tmp_path)
    shrunk(tmp_path, shared_data, study)
    stand_in(tmp_path, shared_data, study)
    config = ("--config", f"study={study}", "allow_missing=true")  # vLLM and a driver
    run(tmp_path, "snakemake", "--profile", "workstation", *config)
    with (tmp_path / f"figures/{study}/table_main.csv").open() as file:
        methods = [row["method"] for row in csv.DictReader(file)]
    print((tmp_path / f"figures/{study}/table_main.md").read_text())
    assert len(set(methods)) == len(true.methods)
    for name in true.outputs:
        assert (tmp_path / f"figures/{study}/{name}.md").exists() or (
            tmp_path / f"figures/{study}/{name}.svg"
        ).exists(), name
    for log in (tmp_path / "logs").rglob("*.log"):  # Snakemake starts no job that has to wait
        assert "Waiting for" not in log.read_text(), log
    turns = turns_on_the_gpu(tmp_path)
    trained, evaluated, pool = len(true.trained), len(true.methods), 1
    assert len(turns) == trained + evaluated + pool
    assert all(end <= start for (_, end), (start, _) in itertools.pairwise(turns))


NAMES = {"A100": "a100", "H100": "h100", "RTX 4090": "4090"}


def reckoned(root: Path, name: str, gpu: str) -> tuple[float, list[FittingGpu]]:
    """GPU-hours of a study as planned for a GPU, and what the parts of its jobs must have."""
    assumed, study = Assumptions(gpu=gpu), resolve_study(load(root / "params.yaml"), name)
    [model] = study.models
    work = plan_model_workload(study, model, assumed)
    rows = hours_rows(work, work.jobs, {}, assumed)
    [needs] = plan_gpu_needs(study, {model: work}, assumed).values()
    return sum(row.jobs * row.gpus * (row.reckoned or 0) for row in rows), needs


@pytest.mark.slow
def test_the_page_has_the_hours_of_the_plan_and_one_gpu_takes_ten_at_most(root):
    page = (root / "docs/gpu.md").read_text()
    rows = {
        row[1]: row for row in re.findall(r"^\| (.*?) \| `(.*?)` \| .* \| (.*?) \|$", page, re.M)
    }
    assert {*rows} == {"one_gpu", "one_gpu_24gb", "one_node"}
    for name, (_, _, words) in rows.items():
        for hours, label in re.findall(r"([\d.]+) on an (A100|H100|RTX 4090)", words):
            found, _ = reckoned(root, name, NAMES[label])
            digits = 1 if "." in hours else 0
            assert f"{found:.{digits}f}" == hours, (name, label)
            assert found <= 10 or name == "one_node"


@pytest.mark.parametrize(
    ("name", "gpu"), [("one_gpu", "a100"), ("one_gpu", "h100"), ("one_node", "h100")]
)
def test_gpus_of_80_gb_hold_every_part_of_a_job(root, name, gpu):
    _, needs = reckoned(root, name, gpu)
    assert all(need.bytes <= GPUS[gpu].memory for need in needs), needs


def test_eight_gpus_hold_a_training_of_8b_and_three_evaluations(root):
    jobs = resolve_study(load(root / "params.yaml"), "one_node").resources_of("qwen3-8b")
    assert jobs.train.gpus + 3 * jobs.evaluate.gpus == 8
