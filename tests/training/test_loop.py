"""The loop as a whole: resumable at every step, the same for every seed, fair to every method."""

import dataclasses
import functools
import itertools
import os
import re
import signal

import pytest
import torch
import yaml

from geosd.objectives.objective import build_objective, names
from geosd.preemption import PreemptionError
from geosd.problems.grading import GradingVerdict
from geosd.seeds import seed_of
from geosd.training.arguments import training_arguments
from geosd.training.loop import train, train_step
from geosd.training.resume_state import ResumeState
from geosd.training.run import RunInputs, assemble_run
from geosd.training.step_log import StepLog

ADAMW = {"rule": "adamw", "inner": None, "kfac": None}


@pytest.fixture
def settings(settings):
    """Shorter responses, which are most of the time of a step."""
    return settings | {"response_tokens": 6}


def assemble(tiny, settings, seed=0):
    return assemble_run(
        RunInputs(settings, tiny / "base", tiny / "train.jsonl", tiny / "pool.jsonl", seed)
    )


def run_to_end(tiny, settings, scratch, seed=0, prepare=None):
    run = assemble(tiny, settings, seed)
    if prepare is not None:
        run = prepare(run) or run
    resume = ResumeState(scratch, [settings, seed])
    log = train(
        run, training_arguments(settings), resume, lambda step: StepLog(scratch / "log", step)
    )
    return run.student.state_dict(), log.table()


def in_a_process_of_its_own(work):
    """Run `work` in a forked process; the number of the signal that ended it, or its exit code."""
    child = os.fork()
    if child == 0:
        try:
            work()
            os._exit(0)
        except BaseException as error:
            print(repr(error), flush=True)
            os._exit(1)
    _, status = os.waitpid(child, 0)
    return -os.waitstatus_to_exitcode(status)


def kill_in_rollout(step):
    """Makes a run kill itself while it samples the rollouts of `step`."""

    def prepare(run):
        sample = run.rollout_source.sampler.sample

        def sample_or_die(prompts, sampling, seed):
            if seed == seed_of(run.seed, "rollout", step):
                os.kill(os.getpid(), signal.SIGKILL)
            return sample(prompts, sampling, seed)

        run.rollout_source.sampler.sample = sample_or_die

    return prepare


def kill_in_save(monkeypatch, step):
    """Makes the next run kill itself with the state of `step` half written."""
    whole = torch.save

    def half_then_die(value, path):
        whole(value, path)
        if value["step"] == step:
            os.truncate(path, os.path.getsize(path) // 2)
            os.kill(os.getpid(), signal.SIGKILL)

    monkeypatch.setattr(torch, "save", half_then_die)


def right_if_even(text, gold):
    """A grader that finds some answers of a model right that is never right."""
    return GradingVerdict(
        text, len(text) % 2 == 0, "correct" if len(text) % 2 == 0 else "wrong answer"
    )


def with_mixed_rewards(run):
    """Rewards that differ within a group, or GRPO has nothing to learn from."""
    source = dataclasses.replace(run.rollout_source, grade=right_if_even)
    return dataclasses.replace(run, rollout_source=source)


def same(first, second):
    return first.keys() == second.keys() and all(torch.equal(first[k], second[k]) for k in first)


@pytest.mark.slow
@pytest.mark.parametrize(("objective", "precision"), [("geosd", "bfloat16"), ("grpo", "float32")])
def test_a_run_killed_at_every_step_ends_like_one_never_killed(
    tiny, settings, tmp_path, monkeypatch, objective, precision
):
    settings["objective"], settings["precision"] = {"name": objective}, precision
    settings |= {"teacher": "average", "steps": 4}
    undisturbed, log = run_to_end(tiny, settings, tmp_path / "whole")
    killed = tmp_path / "killed"
    for step in range(settings["steps"]):
        ended = in_a_process_of_its_own(
            lambda step=step: run_to_end(tiny, settings, killed, prepare=kill_in_rollout(step))
        )
        assert ended == signal.SIGKILL
    with monkeypatch.context() as patch:
        kill_in_save(patch, settings["steps"])
        ended = in_a_process_of_its_own(lambda: run_to_end(tiny, settings, killed))
        assert ended == signal.SIGKILL
    at_the_end = kill_in_rollout(settings["steps"])  # in the measurement after the last step
    ended = in_a_process_of_its_own(lambda: run_to_end(tiny, settings, killed, prepare=at_the_end))
    assert ended == signal.SIGKILL
    resumed, resumed_log = run_to_end(tiny, settings, killed)
    assert same(undisturbed, resumed)
    assert log.equals(resumed_log)


@pytest.mark.slow
@pytest.mark.parametrize(("teacher", "looks"), [("delayed", 8), ("average", 1)])
def test_a_run_asked_to_stop_in_its_rollouts_ends_there_and_goes_on_with_the_same_bits(
    tiny, settings, tmp_path, teacher, looks
):
    settings |= {"teacher": teacher, "steps": 4, "anchor_every": 2, "save_every": 4}
    whole, log = run_to_end(tiny, settings, tmp_path / "whole")
    scratch, ended = tmp_path / "stopped", []
    for _ in range(20):
        calls = itertools.count()  # after each token; with an average, after each step
        run = assemble(tiny, settings)
        resume = ResumeState(scratch, [settings, 0])
        stop = functools.partial(lambda calls: next(calls) >= looks, calls)
        open_log = lambda step: StepLog(scratch / "log", step)  # noqa: E731
        try:
            written = train(run, training_arguments(settings), resume, open_log, None, stop)
            break
        except PreemptionError as error:
            ended.append(int(re.search(r"after (\d+) steps", str(error))[1]))
    assert ended and ended == sorted(ended)
    assert same(whole, run.student.state_dict()) and log.equals(written.table())


def test_the_same_seed_gives_the_same_weights_and_another_gives_others(tiny, settings, tmp_path):
    first, _ = run_to_end(tiny, settings, tmp_path / "1")
    again, _ = run_to_end(tiny, settings, tmp_path / "2")
    other, _ = run_to_end(tiny, settings, tmp_path / "3", seed=1)
    assert same(first, again)
    assert not same(first, other)


@pytest.mark.slow
def test_saving_more_often_and_measuring_less_changes_no_weight(tiny, settings, tmp_path):
    first, _ = run_to_end(tiny, settings, tmp_path / "1")
    settings |= {"save_every": 1, "diagnose_every": 100}
    second, log = run_to_end(tiny, settings, tmp_path / "2")
    assert same(first, second)
    assert log["drift/pi_0"].notna().tolist() == [True, False, False, False, False, False, True]


@pytest.mark.parametrize("objective", sorted(names()))
def test_every_method_moves_the_student_and_leaves_the_base_model_alone(
    tiny, settings, tmp_path, objective
):
    settings |= {"objective": {"name": objective}, "optimiser": ADAMW, "steps": 2}
    before = {}

    def remember(run):
        before["reference"] = {
            k: v.clone() for k, v in run.reference_models.reference.state_dict().items()
        }
        before["run"] = run
        return with_mixed_rewards(run)

    weights, log = run_to_end(tiny, settings, tmp_path, prepare=remember)
    assert same(before["reference"], before["run"].reference_models.reference.state_dict())
    moved = [name for name in weights if not torch.equal(weights[name], before["reference"][name])]
    assert moved
    assert log["loss/total"].notna().tolist() == [True, True, False]
    assert log["drift/pi_0"].iloc[-1] > 0


def test_opsd_learns_from_pi_0_at_its_own_temperature(tiny, settings, tmp_path, root):
    """A few steps of the variant as params.yaml has it."""
    values = yaml.load((root / "params.yaml").read_text(), Loader=yaml.CSafeLoader)
    settings |= values["variants"]["opsd"]["training"] | {"optimiser": ADAMW, "steps": 3}
    kept = []
    weights, log = run_to_end(tiny, settings, tmp_path, prepare=kept.append)
    models, sampling = kept[0].reference_models, kept[0].rollout_source.settings.sampling
    assert models.teacher is models.reference and sampling.temperature == 1.1
    assert kept[0].objective == build_objective("opsd", clip=0.05, temperature=1.1)
    assert not same(weights, models.reference.state_dict())
    # p = q at no step: the teacher reads a solution. A sum of clipped terms may be below 0.
    assert (log["loss/total"].iloc[:-1].abs() > 0).all() and log["drift/pi_0"].iloc[-1] > 0


@pytest.mark.slow
@pytest.mark.parametrize(
    ("objective", "loss_mean"),
    [*((name, "sequence") for name in sorted(names())), ("geosd", "token"), ("grpo", "token")],
)
def test_cutting_a_step_into_chunks_and_passes_changes_no_gradient(
    tiny, settings, objective, loss_mean
):
    settings |= {"objective": {"name": objective}, "optimiser": ADAMW, "loss_mean": loss_mean}
    gradients = []
    cuts = [(4096, None, False), (1, None, True), (4096, 1, False), (7, 2, True)]
    for chunk, microbatch, recompute in cuts:
        settings["recompute"] = recompute
        run = assemble(tiny, settings)
        models = run.reference_models
        for model in (run.student, models.reference, models.anchor):
            model.double()
        with torch.no_grad():
            # Away from pi_0, so that no term of any objective is at its minimum.
            for parameter in run.student.parameters():
                wave = torch.sin(torch.arange(parameter.numel(), dtype=torch.float64))
                parameter.add_(0.01 * wave.view_as(parameter))
        run.update_rule.step = lambda rate: None
        args = training_arguments(settings | {"chunk": chunk, "microbatch": microbatch})
        run.reference_models.refresh = lambda step: None
        train_step(with_mixed_rewards(run), args, 0)
        gradients.append({n: p.grad for n, p in run.student.named_parameters()})
    largest = max(gradient.abs().max() for gradient in gradients[0].values())
    for (_, microbatch, recompute), other in zip(cuts[1:], gradients[1:], strict=True):
        # Passes of other widths round otherwise: norms are float32 inside, whatever the model is.
        # GRPO's one prompt goes through the model once, but where activations are made again.
        same_widths = microbatch is None and not (recompute and objective == "grpo")
        apart = 1e-12 if same_widths else 1e-6 * largest
        for name, gradient in gradients[0].items():
            torch.testing.assert_close(other[name], gradient, rtol=1e-9, atol=float(apart))


def test_the_anchor_is_refreshed_every_k_steps_and_first_at_the_start(tiny, settings, tmp_path):
    _, log = run_to_end(tiny, settings | {"anchor_every": 3}, tmp_path)
    at_refresh = log["drift/anchor"].iloc[[0, 3]]
    between = log["drift/anchor"].iloc[[1, 2, 4, 5, 6]]  # 6 is the end, and refreshes nothing
    assert (at_refresh == 0).all()
    assert (between > 0).all()


def test_the_proximal_term_is_the_logged_drift_squared_in_the_mean_sense(tiny, settings, tmp_path):
    # The logged drift is a mean over positions, so the loss must be one too.
    settings |= {"top_k": 4096, "loss_mean": "token"}
    _, log = run_to_end(tiny, settings, tmp_path)
    # Jensen: the mean of d^2 is at least the square of the mean of d.
    log = log.iloc[:-1]
    later = log.iloc[1:]
    assert (later["loss/prox"] >= later["drift/anchor"] ** 2 * 0.999).all()
    total = log["loss/distil"] + settings["objective"]["drift_penalty"] * log["loss/prox"]
    torch.testing.assert_close(
        torch.tensor(log["loss/total"].values), torch.tensor(total.values), rtol=1e-5, atol=1e-9
    )


@pytest.mark.parametrize(
    "teacher", ["live", "fixed", "delayed", "average", "solution_only", "purified"]
)
def test_each_kind_of_teacher_is_the_model_it_says(tiny, settings, teacher):
    run = assemble(tiny, settings | {"teacher": teacher})
    with torch.no_grad():
        run.student.lm_head.weight.add_(1.0)
    run.reference_models.refresh(1)
    first = run.reference_models.teacher.lm_head.weight[0, 0]
    base = run.reference_models.reference.lm_head.weight[0, 0]
    expected = {"live": 1.0, "average": 0.1}.get(teacher, 0.0)
    torch.testing.assert_close(first - base, torch.tensor(expected))
