"""What the log says of the visited states, against a plain loop over responses and positions."""

import dataclasses
import math

import pytest
import torch

from geosd.training.arguments import training_arguments
from geosd.training.loop import train, train_step
from geosd.training.resume_state import ResumeState
from geosd.training.run import RunInputs, assemble_run
from geosd.training.step_log import StepLog

ADAMW = {"rule": "adamw", "inner": None, "kfac": None}


class Recording:
    """A rollout source that remembers what it collected."""

    def __init__(self, source):
        self.source, self.collected = source, []

    def collect(self, *args, **kwargs):
        self.collected.append(self.source.collect(*args, **kwargs))
        return self.collected[-1]


def assembled(tiny, settings):
    """A run whose student, anchor and pi_0 differ, and which remembers its responses."""
    run = assemble_run(
        RunInputs(settings, tiny / "base", tiny / "train.jsonl", tiny / "pool.jsonl", 0)
    )
    torch.manual_seed(0)
    with torch.no_grad():
        for model in (run.student, run.reference_models.anchor):
            for parameter in model.parameters():
                parameter.add_(0.2 * parameter.std() * torch.randn_like(parameter))
    run.reference_models.refresh = lambda step: None
    return dataclasses.replace(run, rollout_source=Recording(run.rollout_source))


@torch.no_grad()
def distributions(run, rollouts):
    """Model -> its distribution at each response token, in float64, over the whole vocabulary."""
    reference = run.reference_models
    models = {"student": run.student, "teacher": run.student}
    models |= {"anchor": reference.anchor, "pi_0": reference.reference}
    found = {name: [] for name in models}
    for i, response in enumerate(rollouts.responses):
        for name, model in models.items():
            prompts = rollouts.teacher_prompts if name == "teacher" else rollouts.student_prompts
            logits = model(input_ids=torch.tensor([[*prompts[i], *response]])).logits[0]
            first = len(prompts[i]) - 1
            found[name] += logits[first : first + len(response)].double().softmax(-1).tolist()
    return found


def best(p, k):
    return set(sorted(range(len(p)), key=lambda token: -p[token])[:k])


def drift(p, q):
    return 2 * math.acos(min(1.0, sum(math.sqrt(a * b) for a, b in zip(p, q, strict=True))))


@pytest.mark.parametrize("microbatch", [None, 2])
@pytest.mark.parametrize(
    ("method", "on_support"),
    [
        ("geosd", ("student", "teacher", "anchor")),
        ("fwdkl", ("student", "teacher")),
        ("grpo", ("student", "teacher")),
    ],
)
def test_the_teachers_mass_is_that_on_the_support_of_the_loss(
    tiny, settings, method, on_support, microbatch
):
    settings |= {"objective": {"name": method}, "optimiser": ADAMW, "top_k": 3}
    run = assembled(tiny, settings | {"microbatch": microbatch, "chunk": 5})
    args = training_arguments(settings | {"microbatch": microbatch, "chunk": 5})
    run.update_rule.step = lambda rate: None
    values = train_step(run, args, 0)
    ((rollouts, _),) = run.rollout_source.collected
    p = distributions(run, rollouts)
    masses = [
        sum(teacher[token] for token in set().union(*(best(row, 3) for row in scored)))
        for teacher, *scored in zip(p["teacher"], *(p[name] for name in on_support), strict=True)
    ]
    assert values["support/teacher_mass_mean"] == pytest.approx(sum(masses) / len(masses), rel=1e-5)
    assert values["support/teacher_mass_min"] == pytest.approx(min(masses), rel=1e-5)
    assert min(masses) < 0.99 * sum(masses) / len(masses)  # not all the same


def test_on_the_whole_vocabulary_the_logged_means_are_those_of_the_full_distributions(
    tiny, settings
):
    run = assembled(tiny, settings | {"top_k": 4096})
    run.update_rule.step = lambda rate: None
    values = train_step(run, training_arguments(settings | {"top_k": 4096}), 0)
    ((rollouts, _),) = run.rollout_source.collected
    p = distributions(run, rollouts)
    for name, other in {"drift/pi_0": "pi_0", "drift/anchor": "anchor"}.items():
        each = [drift(a, b) for a, b in zip(p["student"], p[other], strict=True)]
        assert values[name] == pytest.approx(sum(each) / len(each), rel=1e-4)
        assert values[name] > 0.01
    overlaps = [math.cos(drift(a, b) / 2) for a, b in zip(p["student"], p["teacher"], strict=True)]
    assert values["overlap"] == pytest.approx(sum(overlaps) / len(overlaps), rel=1e-5)
    assert values["support/teacher_mass_min"] == 1.0


def test_the_log_ends_with_a_measurement_of_the_trained_student_on_rollouts_of_its_own(
    tiny, settings, tmp_path
):
    settings |= {"top_k": 4096, "steps": 3, "final_rollouts": 5, "microbatch": 2}
    run = assembled(tiny, settings)
    resume = ResumeState(tmp_path, settings)
    args = training_arguments(settings)
    log = train(run, args, resume, lambda step: StepLog(tmp_path / "log", step)).table()
    rollouts, _ = run.rollout_source.collected[-1]
    sampler = run.rollout_source.source.problem_sampler
    size = settings["problems"]
    upcoming = sampler.batch(3, size) + sampler.batch(4, size)
    assert rollouts.problems == upcoming[:5]
    p = distributions(run, rollouts)
    last = log.loc[3]
    for name, other in {"drift/pi_0": "pi_0", "drift/anchor": "anchor"}.items():
        each = [drift(a, b) for a, b in zip(p["student"], p[other], strict=True)]
        assert last[name] == pytest.approx(sum(each) / len(each), rel=1e-4)
    assert last["rollout/tokens"] == sum(map(len, rollouts.responses)) / 5
    assert last["support/teacher_mass_min"] == 1.0
    assert log.loc[:2, "loss/total"].notna().all() and math.isnan(last["loss/total"])


def kl(p, q):
    return sum(a * math.log(a / b) for a, b in zip(p, q, strict=True))


def test_sft_is_measured_on_the_students_own_rollouts_and_trained_on_solutions(tiny, settings):
    settings |= {"objective": {"name": "sft"}, "optimiser": ADAMW, "top_k": 4096}
    run = assembled(tiny, settings)
    on_policy = assembled(tiny, settings | {"objective": {"name": "fwdkl"}})
    expected, _ = on_policy.rollout_source.collect(0, False)
    before = distributions(run, expected)
    values = train_step(run, training_arguments(settings), 0)
    (solutions, _), (visited, _) = run.rollout_source.collected
    assert visited.problems == solutions.problems == expected.problems
    assert visited.responses == expected.responses != solutions.responses
    each = [drift(a, b) for a, b in zip(before["student"], before["pi_0"], strict=True)]
    assert values["drift/pi_0"] == pytest.approx(sum(each) / len(each), rel=1e-4)
    after = distributions(run, expected)
    moved = [kl(a, b) for a, b in zip(before["student"], after["student"], strict=True)]
    assert values["update/kl_old_new"] == pytest.approx(sum(moved) / len(moved), rel=1e-3)
    assert values["rollout/tokens"] == pytest.approx(
        sum(map(len, solutions.responses)) / len(solutions.responses)
    )


def test_to_measure_sft_changes_no_weight(tiny, settings):
    settings |= {"objective": {"name": "sft"}, "optimiser": ADAMW}
    weights = []
    for every in (1, 10):
        run = assemble_run(
            RunInputs(settings, tiny / "base", tiny / "train.jsonl", tiny / "pool.jsonl", 0)
        )
        for step in (1, 2):
            train_step(run, training_arguments(settings | {"diagnose_every": every}), step)
        weights.append(run.student.state_dict())
    assert all(torch.equal(weights[0][name], weights[1][name]) for name in weights[0])
