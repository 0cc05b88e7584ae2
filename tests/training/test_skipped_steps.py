"""Steps that are not finite: skipped without a trace in the weights, counted, and too many."""

import copy
import dataclasses
import logging
import math

import pytest
import torch

from geosd.geometry import floored
from geosd.objectives.objective import Objective, build_objective
from geosd.training import loop
from geosd.training.arguments import training_arguments
from geosd.training.loop import TrainStepLoss, train_step
from geosd.training.resume_state import ResumeState
from geosd.training.rollouts import Rollouts
from geosd.training.run import RunInputs, assemble_run
from geosd.training.skipped_steps import LOWER_RATE, SkippedSteps, TrainingDivergedError
from geosd.training.step_log import StepLog

BAD = 2
"""The step that is spoiled."""


def infinite_loss(run):
    return torch.tensor(math.inf)


def gradient_not_a_number(run):
    next(run.student.parameters()).grad[0] = math.nan


def infinite_factor(run):
    run.update_rule.preconditioner.factors.sums()[0][0, 0, 0] = math.inf


def factor_without_inverse(run):
    block = run.update_rule.preconditioner.factors.sums()[0][0]
    block -= 1e9 * torch.eye(len(block))


SPOILERS = [infinite_loss, gradient_not_a_number, infinite_factor, factor_without_inverse]


@pytest.fixture
def trained(tiny, settings, tmp_path, monkeypatch):
    """Train a run whose steps are spoiled; gives weights and moments around each step."""
    whole = loop.train_step

    def train(spoil, bad=(BAD,), scratch="scratch", stop=None, **more):
        paths = (tiny / "base", tiny / "train.jsonl", tiny / "pool.jsonl")
        values = settings | {"diagnose_every": 100} | more
        run, around = assemble_run(RunInputs(values, *paths, 0)), {}
        backward = loop.train_step.__globals__["TrainStepLoss"].backward

        def spoiled_backward(self):
            loss, *rest = backward(self)
            changed = spoil(run) if self.step in bad else None
            return (loss if changed is None else changed, *rest)

        def noted_step(run, args, step):
            before = weights_and_moments(run)
            found = whole(run, args, step)
            around[step] = (before, weights_and_moments(run), found)
            return found

        with monkeypatch.context() as patch:
            patch.setattr("geosd.training.loop.TrainStepLoss.backward", spoiled_backward)
            patch.setattr(loop, "train_step", noted_step)
            folder = tmp_path / scratch
            arguments = dataclasses.replace(
                training_arguments(values), steps=stop or values["steps"]
            )
            resume = ResumeState(folder, values)
            log = loop.train(run, arguments, resume, lambda first: StepLog(folder / "log", first))
        return run, around, log.table()

    return train


def weights_and_moments(run):
    return copy.deepcopy([run.student.state_dict(), run.update_rule.adam.state_dict()["state"]])


def flat(values):
    """Every tensor in nested dicts and lists."""
    if isinstance(values, torch.Tensor):
        return [values]
    parts = values.values() if isinstance(values, dict) else values
    return [tensor for part in parts for tensor in flat(part)]


def same(first, second):
    first, second = flat(first), flat(second)
    return len(first) == len(second) > 0 and all(map(torch.equal, first, second))


@pytest.mark.parametrize("spoil", SPOILERS)
def test_a_step_that_is_not_finite_changes_no_weight_and_the_run_goes_on(trained, caplog, spoil):
    with caplog.at_level(logging.WARNING):
        run, around, log = trained(spoil)
    for step, (before, after, _) in around.items():
        assert same(before, after) == (step == BAD)
    assert all(tensor.isfinite().all() for tensor in flat(weights_and_moments(run)))
    assert log["update/skipped"].dropna().to_dict() == {BAD: 1.0}
    assert log["update/relative_size"][BAD] == 0
    ids = [problem.id for problem in run.problem_sampler.batch(BAD, 3)]
    assert f"step {BAD} is skipped" in caplog.text and ", ".join(ids) in caplog.text


def test_a_run_without_a_bad_step_says_nothing_of_any(trained):
    _, _, log = trained(infinite_loss, bad=())
    assert not {"update/skipped", "curvature/float64_blocks"} & {*log}


@pytest.mark.slow
@pytest.mark.parametrize("spoil", [gradient_not_a_number, factor_without_inverse])
def test_one_bad_step_too_many_ends_the_run_with_its_last_good_weights(trained, tmp_path, spoil):
    with pytest.raises(TrainingDivergedError) as raised:
        trained(spoil, bad=(1, 4))
    state = torch.load(tmp_path / "scratch/state.pt", weights_only=True)
    text = str(raised.value)
    assert "2 of 6 steps had no finite" in text and "1 may be skipped; the last is step 4" in text
    assert str(tmp_path / "scratch/state.pt") in text
    assert text.splitlines()[-1].startswith("Hint: ")
    ids = state["state"]["skipped"]["problems"]
    assert f"on problems {', '.join(ids)}." in text and len(ids) == 3
    _, around, _ = trained(spoil, bad=(1,), scratch="good", stop=4)
    assert state["step"] == 5
    assert same(state["state"]["student"], around[3][1][0])


def test_a_run_that_is_resumed_counts_the_steps_skipped_before(trained):
    """Every second step is saved, so the second start goes on behind the first bad one."""
    run, _, log = trained(gradient_not_a_number, bad=(1,), stop=2)
    assert run.skipped.count == 1 and log["update/skipped"].count() == 1
    with pytest.raises(TrainingDivergedError, match="^2 of 6 steps .* the last is step 3"):
        trained(gradient_not_a_number, bad=(3,))


def test_a_run_without_an_update_ends_with_an_error_however_many_may_be_skipped(trained):
    for _ in range(2):  # the second time from the state behind the last step
        with pytest.raises(TrainingDivergedError, match="^6 of 6 steps .* 5 may(.|\n)*Hint: "):
            trained(gradient_not_a_number, bad=range(6), max_skipped_steps=10)
    run, _, _ = trained(gradient_not_a_number, range(1, 6), "one", max_skipped_steps=10)
    assert run.skipped.count == 5


def rollouts(responses, truncated):
    from geosd.problems.records import Problem

    problems = [Problem(f"p{i}", "train", "q", "1") for i in range(len(responses))]
    prompts = [[1]] * len(responses)
    return Rollouts(problems, prompts, prompts, responses, [0.0] * len(responses), truncated)


def test_a_response_that_is_its_end_alone_is_counted_and_one_without_a_token_is_refused():
    # The first was cut after a token, the second ended at once.
    assert rollouts([[5], [2], [5, 2]], [True, False, False]).summary()["rollout/empty"] == 1 / 3
    assert "rollout/empty" not in rollouts([[5], [5, 2]], [True, False]).summary()
    with pytest.raises(ValueError, match="response to problem p1 has no token.\nHint: "):
        rollouts([[5, 2], []], [False, False])


@dataclasses.dataclass(frozen=True)
class HandWrittenKL(Objective):
    """KL(q || p) as one would write it without the empty slots of the support in mind."""

    floor: bool = False

    def per_position(self, states):
        q = states.teacher.exp()
        log_q, log_p = states.teacher, states.student
        if self.floor:
            log_q, log_p = floored(log_q), floored(log_p)
        return {"loss": (q * (log_q - log_p)).sum(-1)}


def test_a_formula_that_forgets_empty_slots_is_named_and_not_the_learning_rate(
    tiny, settings, caplog, monkeypatch
):
    run = assemble_run(
        RunInputs(settings, tiny / "base", tiny / "train.jsonl", tiny / "pool.jsonl", 0)
    )
    run = dataclasses.replace(run, objective=HandWrittenKL())
    args = training_arguments(settings)
    with caplog.at_level(logging.WARNING):
        assert math.isnan(train_step(run, args, 0)["loss/total"])
    hint = "Hint: look at HandWrittenKL.per_position"
    assert f"{hint}: the logits of all models are finite" in caplog.text
    assert "empty slots of the support are -inf" in caplog.text
    with pytest.raises(TrainingDivergedError, match=hint) as raised:
        run.skipped.check(0, 4, "state.pt")
    assert "learning_rate" not in str(raised.value)
    again = SkippedSteps()
    again.load_state_dict(run.skipped.state_dict())
    assert again == run.skipped

    # The function that States names.
    run = dataclasses.replace(run, objective=HandWrittenKL(floor=True))
    loss = train_step(run, args, 1)["loss/total"]
    exact = assemble_run(
        RunInputs(settings, tiny / "base", tiny / "train.jsonl", tiny / "pool.jsonl", 0)
    )
    exact = dataclasses.replace(exact, objective=build_objective("fwdkl"), skipped=run.skipped)
    assert run.skipped.count == 1 and loss > 0
    assert train_step(exact, args, 1)["loss/total"] == pytest.approx(loss, rel=1e-3)

    # Hidden states that are not finite are not the objective's fault.
    backward = TrainStepLoss.backward

    def overflown(self):
        loss, terms, hidden = backward(self)
        return loss * math.nan, terms, [each * math.inf for each in hidden]

    monkeypatch.setattr(TrainStepLoss, "backward", overflown)
    assert train_step(exact, args, 2)["update/skipped"] == 1
    assert run.skipped.hint == LOWER_RATE
