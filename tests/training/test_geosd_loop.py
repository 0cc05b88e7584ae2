"""The loop on two screens computes what the package's training step computes."""

from __future__ import annotations

import copy
import json
import random
import runpy
from pathlib import Path

import pytest
import torch

from geosd.json_lines import write_jsonl
from geosd.optim.kfac import KFAC
from geosd.problems.records import PooledSolutionsRecord, Problem
from geosd.problems.search.corpora import SearchCorpus
from geosd.problems.search.equations import SEARCH, EquationPair, draw_equations
from geosd.training.arguments import training_arguments
from geosd.training.loop import TrainStepLoss
from geosd.training.microbatches import split_into_microbatches
from geosd.training.run import RunInputs, assemble_run

EXAMPLES = Path(__file__).parents[2] / "examples"
PROBLEMS = EXAMPLES / "search_problems.jsonl"


@pytest.fixture
def loop():
    """The names of the example."""
    return runpy.run_path(str(EXAMPLES / "geosd_loop.py"))


@pytest.fixture
def run(root, settings, loop, tmp_path):
    """A run of the package on the example's problems, its student moved away from its anchor."""
    settings |= {"top_k": loop["TOP_K"], "source": "search", "response_tokens": 42}
    settings["optimiser"]["kfac"] |= {"subsample": 1.0}
    rows = [json.loads(line) for line in PROBLEMS.read_text(encoding="utf-8").splitlines()]
    answers = [row["solution"].rpartition(" ")[2] for row in rows]
    drawn = [
        (f"p{i}", row, answer) for i, (row, answer) in enumerate(zip(rows, answers, strict=True))
    ]
    problems = [Problem(name, "train", row["question"], answer) for name, row, answer in drawn]
    pool = [PooledSolutionsRecord(name, (row["solution"],), 1, 1) for name, row, _ in drawn]
    write_jsonl(tmp_path / "problems.jsonl", problems)
    write_jsonl(tmp_path / "pool.jsonl", pool)
    files = (tmp_path / "problems.jsonl", tmp_path / "pool.jsonl")
    run = assemble_run(RunInputs(settings, root / "base_models/mini-qwen3/0", *files, 0))
    run.reference_models.refresh(0)
    torch.manual_seed(1)
    with torch.no_grad():
        for weight in run.student.parameters():
            weight += 0.1 * weight.norm() * torch.randn_like(weight) / weight.numel() ** 0.5
    return run, training_arguments(settings)


def test_loss_and_preconditioned_gradients_are_those_of_the_packages_step(run, loop):
    run, arguments = run
    student, anchor = copy.deepcopy(run.reference_models.anchor), run.reference_models.anchor
    student.requires_grad_(True).load_state_dict(run.student.state_dict())
    kfac = KFAC(student, blocks=4, damping=1e-3, subsample=1.0)
    rollouts, _ = run.rollout_source.collect(0, False)
    microbatches = split_into_microbatches(rollouts, 0, 1, None, run.encoding.pad_id, "cpu")
    references = [run.reference_logits(each, {}, False) for each in microbatches]
    expected, _, _ = TrainStepLoss(run, arguments, 0, rollouts, microbatches, references).backward()
    run.update_rule.preconditioner.step()

    prompts = (rollouts.student_prompts, rollouts.teacher_prompts, rollouts.responses)
    loss, shared = loop["backward"](student, anchor, kfac, *prompts, run.encoding.pad_id)
    kfac.step()

    assert loss == pytest.approx(expected.item(), rel=1e-6)
    assert 0.1 < shared < 0.99  # student and teacher differ
    for (name, own), package in zip(
        student.named_parameters(), run.student.parameters(), strict=True
    ):
        assert own.grad.norm() > 0, name
        error = (own.grad - package.grad).norm() / package.grad.norm()
        assert error < 1e-5, f"{name}: {error}"


@pytest.mark.slow
def test_the_loop_runs_on_the_shipped_problems(root, loop, capsys):
    loop["main"](str(root / "base_models/mini-qwen3/0"), str(PROBLEMS), 2)
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[:2] for line in lines] == [["step", "0"], ["step", "1"]]


def test_the_shipped_problems_are_of_the_search_world():
    draws, corpus = random.Random(0), SearchCorpus()
    for line in PROBLEMS.read_text(encoding="utf-8").splitlines():
        question = draw_equations(SEARCH.in_distribution(), draws)
        solution = corpus.verified(question, draws)
        assert json.loads(line) == {"question": str(question), "solution": solution}
        assert solution.endswith(f"A: {EquationPair.parse(str(question)).answer()}")
