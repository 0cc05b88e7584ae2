"""Teachers that read the solution without the question, against whole passes in float64."""

import numpy as np
import pytest
import torch

from geosd.training.chunked_logits import ChunkedLogits
from geosd.training.microbatches import split_into_microbatches
from geosd.training.purified import LARGEST_CHANGE, PurifiedLogits
from geosd.training.run import RunInputs, assemble_run


@pytest.fixture
def settings(settings):
    """Shorter responses of FwdKL, and a student that has left pi_0."""
    return settings | {"response_tokens": 6, "objective": {"name": "fwdkl"}}


def moved_run(tiny, settings):
    """A run whose student is not pi_0 any more, and one step's rollouts."""
    run = assemble_run(
        RunInputs(settings, tiny / "base", tiny / "train.jsonl", tiny / "pool.jsonl", 0)
    )
    torch.manual_seed(0)
    with torch.no_grad():
        for weight in run.student.parameters():
            weight.add_(0.1 * torch.randn_like(weight))
    rollouts, _ = run.rollout_source.collect(0, False)
    return run, rollouts


def teacher_logits(run, rollouts, microbatch=None):
    """The teacher's logits [N, V] as the loop gets them, microbatch by microbatch."""
    pad = run.encoding.pad_id
    parts = split_into_microbatches(rollouts, 0, 1, microbatch, pad, run.policy.device)
    teachers = [run.reference_logits(part, {}, False)["teacher"] for part in parts]
    return torch.cat([teacher.logits(slice(None)) for teacher in teachers])


@torch.no_grad()
def log_probabilities(model, prompts, responses):
    """log p [N, V] of each response token, by one pass of a sequence, in float64."""
    rows = []
    for prompt, response in zip(prompts, responses, strict=True):
        logits = model(input_ids=torch.tensor([[*prompt, *response]])).logits[0].double()
        first = len(prompt) - 1
        rows.append(logits[first : first + len(response)].numpy())
    logits = np.concatenate(rows)
    return logits - np.log(np.exp(logits).sum(-1, keepdims=True))


def alone_prompts(run, rollouts):
    """The teacher's prompts without the question, put together from words."""
    prompts = []
    for problem in rollouts.problems:
        solution = run.problem_sampler.solution(problem, 0)
        prompts.append(run.encoding.tokenizer(f"Q: R: {solution} S:").input_ids)
    return prompts


def test_a_teacher_with_the_solution_only_is_pi_0_without_the_question(tiny, settings):
    run, rollouts = moved_run(tiny, settings | {"teacher": "solution_only"})
    prompts = alone_prompts(run, rollouts)
    assert rollouts.teacher_prompts == prompts and rollouts.solution_prompts is None
    pi_0 = run.reference_models.reference
    expected = log_probabilities(pi_0, prompts, rollouts.responses)
    found = teacher_logits(run, rollouts).double().log_softmax(-1).numpy()
    np.testing.assert_allclose(found, expected, atol=1e-4)


@pytest.mark.parametrize("microbatch", [None, 1])
def test_a_purified_teacher_is_pi_0_moved_by_what_the_question_adds(tiny, settings, microbatch):
    run, rollouts = moved_run(tiny, settings | {"teacher": "purified"})
    assert rollouts.solution_prompts == alone_prompts(run, rollouts)
    pi_0, responses = run.reference_models.reference, rollouts.responses
    alone = log_probabilities(pi_0, rollouts.student_prompts, responses)
    informed = log_probabilities(pi_0, rollouts.teacher_prompts, responses)
    without = log_probabilities(pi_0, rollouts.solution_prompts, responses)
    added = informed - without
    added -= added.mean(-1, keepdims=True)
    target = np.exp(alone + 10 * np.tanh(added / 10))
    target /= target.sum(-1, keepdims=True)
    found = teacher_logits(run, rollouts, microbatch).double().softmax(-1).numpy()
    np.testing.assert_allclose(found, target, atol=1e-5)
    assert np.abs(target - np.exp(alone)).max() > 1e-3  # and it is not pi_0 as it is


def fixed_logits(logits):
    """`ChunkedLogits` of a head that is the identity."""
    model = torch.nn.Module()
    model.lm_head = torch.nn.Linear(logits.shape[1], logits.shape[1], bias=False)
    with torch.no_grad():
        model.lm_head.weight.copy_(torch.eye(logits.shape[1]))
    return ChunkedLogits(model, logits)


def test_a_question_that_adds_nothing_leaves_pi_0_and_no_change_passes_its_bound():
    generator = torch.Generator().manual_seed(0)
    alone, other = (torch.randn(5, 7, generator=generator) for _ in range(2))
    same = PurifiedLogits(*map(fixed_logits, (alone, other, other)))
    torch.testing.assert_close(same.logits(slice(None)).softmax(-1), alone.softmax(-1))
    sure = PurifiedLogits(*map(fixed_logits, (alone, 1000 * other, -1000 * other)))
    change = sure.logits(slice(1, 4)) - alone[1:4].log_softmax(-1)
    assert change.abs().max() <= LARGEST_CHANGE + 1e-4
    assert change.abs().max() > 0.99 * LARGEST_CHANGE
