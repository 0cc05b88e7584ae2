"""The program that compares student and teacher of a base model, on one that the project ships."""

import json
import re
import runpy
from dataclasses import asdict
from types import SimpleNamespace

import pytest

from geosd.problems.grading.typed_grader import TypedGrader
from geosd.problems.sources import get_data_source
from geosd.sampling.sampler import SamplingParams

SPLITS = {"train": 6, "select_train": 0, "select_validation": 0, "test_id": 1}


@pytest.fixture(scope="module")
def program(root):
    return runpy.run_path(str(root / "analysis/teacher_accuracy.py"))


def trial_of(problem):
    """The trial of the right x, which satisfies a x + b = c and d x + e = f modulo 16."""
    a, b, c, d, e, f = map(int, re.findall(r"\d+", problem.question))
    x = int(problem.answer)
    first, second = a * x % 16, d * x % 16
    assert (first + b) % 16 == c and (second + e) % 16 == f
    return f"{x} {first} {c} ok {second} {f} ok A: {x}"


@pytest.fixture
def arguments(root, tmp_path):
    """Arguments for six training problems of the world of search; the last has no solution."""
    splits = get_data_source("search").prepare({**SPLITS, "test_per_benchmark": 1, "seed": 0})
    problems = splits.train
    solutions = [[trial_of(problem)] for problem in problems[:-1]] + [[]]
    rows = {
        "problems": [asdict(problem) for problem in problems],
        "pool": [
            {"problem_id": problem.id, "solutions": texts, "drawn": 1, "verified": len(texts)}
            for problem, texts in zip(problems, solutions, strict=True)
        ],
    }
    for name, lines in rows.items():
        (tmp_path / name).write_text("".join(json.dumps(line) + "\n" for line in lines))
    paths = {name: tmp_path / name for name in rows}
    return {"source": "search", "base": root / "base_models/mini-qwen3/0", "cap": 42, **paths}


def test_a_teacher_of_the_miniature_is_better_than_its_student(program, arguments, capsys):
    program["main"](**arguments, samples=8)
    lines = capsys.readouterr().out.splitlines()
    right = [
        float(re.fullmatch(r"\w+: ([\d.]+) % right, [\d.]+ % end .*", s)[1]) for s in lines[:2]
    ]
    assert right[1] >= right[0] + 25
    assert lines[2] == "5 problems, 8 responses each, at most 42 tokens"


def test_wordings_of_prompts_that_have_one_are_refused(program, arguments):
    with pytest.raises(ValueError, match="(?s)'search' have one wording.*Hint:"):
        program["main"](**arguments, wordings=("{question}",))


def test_shares_count_responses_of_all_problems(program):
    texts = ["Answer: 4", "Answer: 5", "7 and so", "Answer: 7"]
    responses = [
        SimpleNamespace(ids=text, finish="length" if "so" in text else "stop") for text in texts
    ]
    sampler = SimpleNamespace(sample=lambda prompts, sampling, seed: responses[: len(prompts)])
    found = program["shares"](
        [SimpleNamespace(answer="4"), SimpleNamespace(answer="7")],
        [[1], [2]],
        sampler,
        SimpleNamespace(text=lambda ids: ids),
        TypedGrader(),
        2,
        SamplingParams(1.0, 1.0, 8),
    )
    assert found == (0.5, 0.75)
