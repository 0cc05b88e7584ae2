"""A long training in one process: memory, open files and living tensors stay what they were.

The model is the smallest that the loop takes, because only the number of steps matters: what a step
leaves behind is left hundreds of times.
"""

from __future__ import annotations

import gc
import json
import os
import random
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil
import pytest
import torch

from geosd.json_lines import write_jsonl
from geosd.models.architectures import Architecture
from geosd.models.load_and_save import save_model
from geosd.models.tiny_models import random_model
from geosd.problems.miniature import build_miniature_tokenizer
from geosd.problems.records import PooledSolutionsRecord, Problem
from geosd.problems.search.corpora import BLIND, VOCABULARY, draw_corpus_solution
from geosd.problems.search.equations import SEARCH, draw_equations
from geosd.training.arguments import training_arguments
from geosd.training.loop import train
from geosd.training.resume_state import ResumeState, Snapshots
from geosd.training.run import RunInputs, assemble_run
from geosd.training.step_log import StepLog

STEPS = 2_000 if "GEOSD_ALL_DRAWS" in os.environ else 500
EVERY, WARM = 100, 200
"""Steps between measurements, which are those between states; and the first one that counts."""
MOST_GROWTH = 6e6
"""Bytes, of what is no object of Python: the allocator takes 4 MB at once."""
SMALL = {
    **{"steps": STEPS, "save_every": EVERY, "diagnose_every": 50, "anchor_every": 64},
    **{"problems": 1, "group": 1, "response_tokens": 2, "top_k": 4, "final_rollouts": 1},
}


@pytest.fixture
def world(tmp_path):
    """Folder with base/, train.jsonl and pool.jsonl, of a model of one narrow layer."""
    tokenizer, draw = build_miniature_tokenizer(VOCABULARY), random.Random(0)
    size = {"layers": 1, "hidden": 16, "ffn": 16, "heads": 1, "kv_heads": 1, "head": 16}
    shape = Architecture("soak", "qwen3", **size, vocabulary=len(tokenizer), tied=False)
    ids = {"pad_token_id": tokenizer.pad_token_id, "eos_token_id": tokenizer.eos_token_id}
    torch.manual_seed(0)
    save_model(random_model(shape, 256, **ids, bos_token_id=None), tokenizer, tmp_path / "base")
    questions = [draw_equations(SEARCH.in_distribution(), draw) for _ in range(12)]
    problems = [Problem(f"p{i}", "train", str(q), str(q.answer())) for i, q in enumerate(questions)]
    write_jsonl(tmp_path / "train.jsonl", problems)
    checked = replace(BLIND, check=1.0)  # so every solution is right
    pool = [
        PooledSolutionsRecord(p.id, (draw_corpus_solution(q, checked, draw),), 1, 1)
        for p, q in zip(problems, questions, strict=True)
    ]
    write_jsonl(tmp_path / "pool.jsonl", pool)
    return tmp_path


@pytest.mark.slow
def test_hundreds_of_steps_keep_nothing(world, settings, capsys):
    # In a process of its own: that of pytest has a heap full of holes, which grows by itself.
    (world / "settings.json").write_text(json.dumps(settings | SMALL))
    done = subprocess.run([sys.executable, __file__, str(world)], capture_output=True, text=True)
    assert not done.returncode, done.stderr
    measured = {int(step): values for step, values in json.loads(done.stdout).items()}
    with capsys.disabled():
        for step, (memory, *counts) in measured.items():
            print(f"\n| {step} | {memory / 1e6:.1f} | {counts} |", end="")
    memory, containers, objects, *counts = measured[WARM]
    memory_at_end, containers_at_end, objects_at_end, *counts_at_end = measured[STEPS]
    assert memory_at_end - memory < MOST_GROWTH
    assert containers_at_end - containers < 0.1 * (STEPS - WARM)
    assert objects_at_end - objects < 2 * (STEPS - WARM)
    assert counts_at_end == counts


def soak(world: Path) -> dict[int, tuple[int, ...]]:
    """Train on the world; step -> bytes, containers, objects, open files, tensors."""
    settings = json.loads((world / "settings.json").read_text())
    inputs = (world / "base", world / "train.jsonl", world / "pool.jsonl")
    run, process, measured = assemble_run(RunInputs(settings, *inputs, 0)), psutil.Process(), {}

    class MeasuringState(ResumeState):
        """A resume state that measures the process after each save, the last act of a step."""

        def save(self, step: int, state: dict[str, Any]) -> None:
            super().save(step, state)
            gc.collect()
            blocks = sys.getallocatedblocks()  # of every object, numbers and texts too
            containers = gc.get_objects()
            tensors = sum(issubclass(type(each), torch.Tensor) for each in containers)
            counts = (len(containers), blocks, process.num_fds(), tensors)
            del containers
            measured[step] = (process.memory_info().rss, *counts)

    train(
        run,
        training_arguments(settings),
        MeasuringState(world, settings),
        lambda step: StepLog(world / "log", step),
        Snapshots(world / "snapshots", [WARM, STEPS]),
    )
    return measured


if __name__ == "__main__":
    print(json.dumps(soak(Path(sys.argv[1]))))
