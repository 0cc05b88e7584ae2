"""A long training in one process: memory, open files and living tensors stay what they were.

The model is the smallest that the loop takes, because only the number of steps matters: what a step
leaves behind is left a thousand times.
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

import psutil
import pytest
import torch

from geosd.files import write_jsonl
from geosd.models.architectures import Architecture
from geosd.models.load_and_save import save_model
from geosd.models.tiny_architectures import random_model
from geosd.problems.miniature import build_tokenizer
from geosd.problems.records import PooledSolutions, Problem
from geosd.problems.search.documents import BLIND, VOCABULARY
from geosd.problems.search.equations import SEARCH, draw_question
from geosd.problems.search.policies import search
from geosd.training.loop import train
from geosd.training.resume_state import ResumeState, Snapshots
from geosd.training.run import RunInputs, assemble_run, training_arguments
from geosd.training.step_log import StepLog

STEPS = 2_000 if "GEOSD_ALL_DRAWS" in os.environ else 1_250
EVERY, WARM = 250, 500
MOST_GROWTH = 4e6
"""Bytes. A copy of the weights, 11 kB, that each of 750 steps kept would be 8 MB."""
SMALL = {
    **{"steps": STEPS, "save_every": EVERY, "diagnose_every": 50, "anchor_every": 64},
    **{"problems": 1, "group": 1, "response_tokens": 2, "top_k": 4, "final_rollouts": 1},
}


@pytest.fixture
def world(tmp_path):
    """Folder with base/, train.jsonl and pool.jsonl, of a model of one narrow layer."""
    tokenizer, draw = build_tokenizer(VOCABULARY), random.Random(0)
    size = {"layers": 1, "hidden": 16, "ffn": 16, "heads": 1, "kv_heads": 1, "head": 16}
    shape = Architecture("soak", "qwen3", **size, vocabulary=len(tokenizer), tied=False)
    ids = {"pad_token_id": tokenizer.pad_token_id, "eos_token_id": tokenizer.eos_token_id}
    torch.manual_seed(0)
    save_model(random_model(shape, 256, **ids, bos_token_id=None), tokenizer, tmp_path / "base")
    questions = [draw_question(SEARCH.in_distribution(), draw) for _ in range(12)]
    problems = [Problem(f"p{i}", "train", str(q), str(q.answer())) for i, q in enumerate(questions)]
    write_jsonl(tmp_path / "train.jsonl", problems)
    checked = replace(BLIND, check=1.0)  # so every solution is right
    pool = [
        PooledSolutions(p.id, (search(q, checked, draw),), 1, 1)
        for p, q in zip(problems, questions, strict=True)
    ]
    write_jsonl(tmp_path / "pool.jsonl", pool)
    return tmp_path


@pytest.mark.slow
def test_a_thousand_steps_keep_nothing(world, settings, capsys):
    # In a process of its own: that of pytest has a heap full of holes, which grows by itself.
    (world / "settings.json").write_text(json.dumps(settings | SMALL))
    done = subprocess.run([sys.executable, __file__, str(world)], capture_output=True, text=True)
    assert not done.returncode, done.stderr
    measured = {int(step): values for step, values in json.loads(done.stdout).items()}
    with capsys.disabled():
        for step, (memory, files, tensors) in measured.items():
            print(f"\n| {step} | {memory / 1e6:.1f} | {files} | {tensors} |", end="")
    (memory, *counts), (memory_at_end, *counts_at_end) = measured[WARM], measured[STEPS]
    assert memory_at_end - memory < MOST_GROWTH
    assert counts_at_end == counts


def soak(world: Path) -> dict[int, tuple[int, int, int]]:
    """Train on the world; step -> bytes of the process, open files, living tensors."""
    settings = json.loads((world / "settings.json").read_text())
    inputs = (world / "base", world / "train.jsonl", world / "pool.jsonl")
    run, process, measured = assemble_run(RunInputs(settings, *inputs, 0)), psutil.Process(), {}
    steps = iter(range(1, STEPS + 1))

    def measure() -> bool:
        step = next(steps)
        if step % EVERY == 0:
            gc.collect()
            tensors = sum(issubclass(type(each), torch.Tensor) for each in gc.get_objects())
            measured[step] = (process.memory_info().rss, process.num_fds(), tensors)
        return False

    train(
        run,
        training_arguments(settings),
        ResumeState(world, settings),
        lambda step: StepLog(world / "log", step),
        Snapshots(world / "snapshots", [WARM, STEPS]),
        measure,
    )
    return measured


if __name__ == "__main__":
    print(json.dumps(soak(Path(sys.argv[1]))))
