"""A world small enough for a whole training run in a second: random base, hand-made pool."""

import operator
import random

import pytest

from geosd.json_lines import write_jsonl
from geosd.models.load_and_save import save_model
from geosd.models.tiny_models import build_tiny_model
from geosd.problems.miniature import SPECIAL, build_miniature_tokenizer
from geosd.problems.records import PooledSolutionsRecord, Problem

# Chains of digits modulo 10, worked from left to right: `7 + 8 = 5 ; 5 - 3 = 2 ; A: 2`. A random
# model's student and teacher differ there, so no gradient is so small that AdamW steps by rounding.
OPERATIONS = {"+": operator.add, "-": operator.sub, "*": operator.mul}
VOCABULARY = (*SPECIAL, "Q:", "R:", "S:", "A:", "=", ";", *OPERATIONS, *"0123456789")


def question(draw):
    words = [str(draw.randrange(10))]
    for _ in range(draw.randint(5, 7)):
        if draw.random() < 0.05:
            words += ["*", str(draw.choice((3, 7, 9)))]
        else:
            words += [draw.choice("+-"), str(draw.randrange(10))]
    return " ".join(words)


def solution(question, draw):
    value, *words = question.split()
    steps = []
    while words:
        taken = 2 * draw.choices((1, 2, 3), (0.5, 0.35, 0.15))[0]
        chain, words, end = [value, *words[:taken]], words[taken:], int(value)
        for sign, digit in zip(chain[1::2], chain[2::2], strict=True):
            end = OPERATIONS[sign](end, int(digit)) % 10
        value = str(end)
        steps.append(" ".join([*chain, "=", value]))
    return " ; ".join([*steps, f"A: {value}"])


@pytest.fixture(scope="session")
def tiny(tmp_path_factory):
    """Folder with base/, train.jsonl and pool.jsonl."""
    folder = tmp_path_factory.mktemp("tiny")
    tokenizer = build_miniature_tokenizer(VOCABULARY)
    model = build_tiny_model(
        "mini-qwen3-xs", len(tokenizer), tokenizer.pad_token_id, tokenizer.eos_token_id, seed=0
    )
    save_model(model, tokenizer, folder / "base")
    draw = random.Random(0)
    questions = [question(draw) for _ in range(12)]
    answers = [solution(each, random.Random(0)).split()[-1] for each in questions]
    drawn = enumerate(zip(questions, answers, strict=True))
    problems = [Problem(f"p{i}", "train", each, answer) for i, (each, answer) in drawn]
    write_jsonl(folder / "train.jsonl", problems)
    pool = [
        PooledSolutionsRecord(p.id, tuple(solution(p.question, draw) for _ in range(3)), 3, 3)
        for p in problems
    ]
    write_jsonl(folder / "pool.jsonl", pool)
    return folder


@pytest.fixture
def settings():
    """Training settings of a few tiny steps; tests change what they are about."""
    return tiny_settings()


@pytest.fixture(scope="session")
def settings_of_steps():
    """The same settings, for what several tests share; nobody changes them."""
    return tiny_settings()


def tiny_settings():
    """Settings of a few tiny steps of GeoSD."""
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
