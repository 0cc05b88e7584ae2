"""Two processes with half of a step's responses each, in shards, against one process with all.

Run as a program, this file is what each of the two does.
"""

import copy
import dataclasses
import json
import sys
from pathlib import Path

import pytest
import torch
from cases import launch

from geosd.problems.grading import GradingVerdict
from geosd.training.arguments import training_arguments
from geosd.training.fsdp import full_model, full_state_dict
from geosd.training.loop import train
from geosd.training.process_groups import init_process_groups
from geosd.training.processes import TrainingProcesses, end_training_process
from geosd.training.resume_state import ResumeState
from geosd.training.run import RunInputs, assemble_run
from geosd.training.step_log import StepLog

ADAMW = {"rule": "adamw", "inner": None, "kfac": None}
BEFORE = 3
"""Steps after which a run is left, an odd number: the anchor is neither the student nor pi_0."""
CASES = {
    "geosd": {"save_every": BEFORE},
    "geosd, a response a pass, recomputed": {"microbatch": 1, "recompute": True},
    "geosd, a factor without an inverse": {},
    "fwdkl, a response a pass": {
        "objective": {"name": "fwdkl"},
        "optimiser": ADAMW,
        "microbatch": 1,
        "loss_mean": "token",
    },
    "jsd, a purified teacher on the whole vocabulary": {
        "objective": {"name": "jsd"},
        "optimiser": ADAMW,
        "teacher": "purified",
        "top_k": None,
        "microbatch": 1,
        "chunk": 5,
    },
    "tip, a response a pass": {"objective": {"name": "tip"}, "optimiser": ADAMW, "microbatch": 1},
    "grpo, a response a pass": {"objective": {"name": "grpo"}, "optimiser": ADAMW, "microbatch": 1},
}


def steps_of(case):
    """Five for the first case; four where the third is spoiled, to see the one behind it."""
    return 5 if case == "geosd" else 4 if case.endswith("without an inverse") else 3


def right_if_even(text, gold):
    """A grader that finds some answers of a model right that is never right."""
    return GradingVerdict(
        text, len(text) % 2 == 0, "correct" if len(text) % 2 == 0 else "wrong answer"
    )


def with_rewards(local):
    """Rollouts some of which are right, of a model that is never right."""
    return dataclasses.replace(local, grade=right_if_even)


def five_steps(ranks, settings, tiny, out, steps=5, singular=False, link=None):
    """First gradients, last factors, weights and log; None on other ranks than the first.

    `singular` spoils a block of the last rank at its third update; `link` leads to a worker.
    """
    tiny = Path(tiny)
    inputs = (tiny / "base", tiny / "train.jsonl", tiny / "pool.jsonl")
    run = assemble_run(RunInputs(settings, *inputs, 0), ranks, link)
    if link is None:
        run = dataclasses.replace(run, rollout_source=with_rewards(run.rollout_source))
    step, gradients, calls = run.update_rule.step, {}, []

    def remember(rate):
        calls.append(rate)
        if singular and len(calls) == 3 and ranks.rank == ranks.size - 1:
            block = run.update_rule.preconditioner.factors.sums()[0][-1]
            block -= 1e9 * torch.eye(len(block))
        if not gradients:
            for name, parameter in run.student.named_parameters():
                grad = parameter.grad
                gradients[name] = getattr(grad, "full_tensor", lambda grad=grad: grad)().clone()
        step(rate)

    run.update_rule.step = remember
    args = dataclasses.replace(training_arguments(settings), steps=steps)
    resume = ResumeState(out, settings)
    log = train(run, args, resume, lambda first: StepLog(out / "log", first))
    factors = run.update_rule.state_dict()["kfac"]
    weights = full_state_dict(run.student)
    model = full_model(run.student)
    if link is not None:
        run.rollout_source.end()
    if not ranks.is_main:
        return None
    assert all(torch.equal(weights[name], value) for name, value in model.state_dict().items())
    found = {"gradients": gradients, "weights": weights, "log": log.table()}
    if factors is not None:
        found["factors"] = dict(enumerate(factors["factors"]["averages"]))
    return found


def main(folder):
    """A rank: all cases, then a run that stops half way, for one process to go on from."""
    torch.set_num_threads(1)
    folder = Path(folder)
    tiny, cases = json.loads((folder / "cases.json").read_text())
    with init_process_groups() as (ranks, _):
        for name, settings in cases.items():
            singular = name.endswith("without an inverse")
            found = five_steps(ranks, settings, tiny, folder / name, steps_of(name), singular)
            save(found, folder / f"{name}.pt")
        five_steps(ranks, cases["geosd"], tiny, folder / "half", BEFORE)


def compare(run, saved):
    """How far two runs of the same settings are apart: loss, gradients, factors, weights.

    `run` is as `five_steps` returns it, `saved` as a program has saved it. The whole logs must
    agree.
    """
    kinds = [kind for kind in ("gradients", "factors", "weights") if kind in run]
    apart = {kind: furthest(saved[kind], run[kind]) for kind in kinds}
    log = run["log"].to_dict("list")
    assert log.keys() == saved["log"].keys()
    losses = [log["loss/total"][:-1], saved["log"]["loss/total"][:-1]]  # the end has none
    apart["loss"] = max(abs(a - b) for a, b in zip(*losses, strict=True))
    for column in log:
        torch.testing.assert_close(
            torch.tensor(saved["log"][column]),
            torch.tensor(log[column]),
            rtol=1e-3,
            atol=1e-5,
            equal_nan=True,
            msg=lambda message, column=column: f"{column}: {message}",
        )
    return apart


def save(found, path):
    """Save on the first rank, the only one that has found something, what `compare` reads."""
    if found is not None:
        torch.save({**found, "log": found["log"].to_dict("list")}, path)


def settings_of(settings, case):
    settings = copy.deepcopy(settings) | {"problems": 4, "learning_rate": 1e-3, "steps": 5}
    settings |= {"diagnose_every": 3}
    return settings | CASES[case]


def furthest(first, second):
    """The largest difference of two dicts of tensors, beside their largest entry."""
    assert first.keys() == second.keys()
    apart = max((first[name] - second[name]).abs().max().item() for name in first)
    return apart / max(value.abs().max().item() for value in second.values())


@pytest.mark.slow
def test_two_ranks_take_the_steps_of_one_process(tiny, settings, tmp_path, capsys):
    cases = {name: settings_of(settings, name) for name in CASES}
    (tmp_path / "cases.json").write_text(json.dumps([str(tiny), cases]))
    launch(__file__, tmp_path)
    measured, whole = {}, None
    for name, values in cases.items():
        double = torch.load(tmp_path / f"{name}.pt", weights_only=True)
        singular = name.endswith("without an inverse")
        out = tmp_path / f"one {name}"
        single = five_steps(TrainingProcesses(), values, tiny, out, steps_of(name), singular)
        whole = single if name == "geosd" else whole
        assert ("update/skipped" in single["log"]) == singular
        lengths = single["log"]["rollout/tokens"]
        assert (lengths < values["response_tokens"]).any()  # sequences of unequal length
        measured[name] = compare(single, double)
    with capsys.disabled():
        print()
        for name, apart in measured.items():
            print(name, {kind: f"{value:.1e}" for kind, value in apart.items()})
    assert max(max(apart.values()) for apart in measured.values()) < 1e-5

    # What two ranks saved after three steps, one process ends.
    ended = five_steps(TrainingProcesses(), cases["geosd"], tiny, tmp_path / "half")
    assert ended["log"].index.tolist() == whole["log"].index.tolist() == [0, 1, 2, 3, 4, 5]
    assert furthest(ended["weights"], whole["weights"]) < 1e-5


def test_responses_that_cannot_be_shared_evenly_are_refused(tiny, settings):
    from geosd.training.microbatches import split_into_microbatches
    from geosd.training.rollouts import Rollouts

    rollouts = Rollouts([None] * 3, [[1]] * 3, [[1]] * 3, [[2]] * 3, [0.0] * 3, [False] * 3)
    with pytest.raises(ValueError, match="3 responses cannot be shared evenly by 2 ranks"):
        split_into_microbatches(rollouts, 0, 2, None, 0, torch.device("cpu"))


def test_rollouts_of_the_end_that_cannot_be_shared_evenly_are_refused_at_the_beginning(
    tiny, settings, tmp_path
):
    class Two(TrainingProcesses):
        size = 2

    inputs = (tiny / "base", tiny / "train.jsonl", tiny / "pool.jsonl")
    run = dataclasses.replace(assemble_run(RunInputs(settings, *inputs, 0)), ranks=Two())
    args = dataclasses.replace(training_arguments(settings), final_rollouts=5)
    with pytest.raises(ValueError, match="5 responses cannot be shared .*\n.*final_rollouts"):
        train(run, args, ResumeState(tmp_path, settings), lambda first: None)


if __name__ == "__main__":
    main(sys.argv[1])
    end_training_process()
