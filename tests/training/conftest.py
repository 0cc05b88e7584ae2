"""A world small enough for a whole training run in a second: random base, hand-made pool."""

import random
from dataclasses import replace

import pytest

from geosd.files import write_jsonl
from geosd.models.checkpoints import save_model
from geosd.models.tiny_architectures import build
from geosd.problems.miniature.tokenizer import build_tokenizer
from geosd.problems.records import PooledSolutions, Problem
from geosd.problems.search.documents import BLIND, VOCABULARY
from geosd.problems.search.equations import IN_DISTRIBUTION, draw_question
from geosd.problems.search.policies import search


@pytest.fixture(scope="session")
def tiny(tmp_path_factory):
    """Folder with base/, train.jsonl and pool.jsonl."""
    folder = tmp_path_factory.mktemp("tiny")
    tokenizer = build_tokenizer(VOCABULARY)
    model = build(
        "mini-qwen3-xs", len(tokenizer), tokenizer.pad_token_id, tokenizer.eos_token_id, seed=0
    )
    save_model(model, tokenizer, folder / "base")
    draw = random.Random(0)
    questions = [draw_question(IN_DISTRIBUTION, draw) for _ in range(12)]
    problems = [Problem(f"p{i}", "train", str(q), str(q.answer())) for i, q in enumerate(questions)]
    write_jsonl(folder / "train.jsonl", problems)
    checked = replace(BLIND, check=1.0)  # so every solution is right
    pool = [
        PooledSolutions(p.id, tuple(search(q, checked, draw) for _ in range(3)), 3, 3)
        for p, q in zip(problems, questions, strict=True)
    ]
    write_jsonl(folder / "pool.jsonl", pool)
    return folder


@pytest.fixture
def settings():
    """Training settings of a few tiny steps; tests change what they are about."""
    return {
        "steps": 6,
        "problems": 3,
        "group": 4,
        "temperature": 1.0,
        "response_tokens": 12,
        "learning_rate": 1e-2,
        "betas": [0.9, 0.95],
        "weight_decay": 0.0,
        "warmup": 2,
        "precision": "float32",
        "top_k": 8,
        "anchor_every": 2,
        "loss_mean": "sequence",
        "privilege": 1.0,
        "teacher": "live",
        "teacher_decay": 0.9,
        "save_every": 2,
        "max_skipped_steps": 1,
        "diagnose_every": 1,
        "final_rollouts": 4,
        "chunk": 4096,
        "microbatch": None,
        "recompute": False,
        "source": "search",
        "thinking": False,
        "rollout": {"engine": "transformers", "sequences": 256},
        "optimiser": {
            "rule": "kfac",
            "inner": "adamw",
            "kfac": {
                "blocks": 4,
                "decay": 0.95,
                "damping": 1e-3,
                "subsample": 0.5,
                "inverse_every": 1,
                "storage": "float32",
            },
        },
        "objective": {"name": "geosd", "divergence": "hellinger", "drift_penalty": 1.0},
    }
