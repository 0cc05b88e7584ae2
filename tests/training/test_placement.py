"""A worker that samples and scores in a process of its own.

Run as a program, this file is what each of two processes does: one trains, one works.
"""

import json
import sys
import threading
import time
from pathlib import Path

import pytest
import torch
from cases import launch

from geosd.sampling.sampler import SamplingParams
from geosd.training.arguments import training_arguments
from geosd.training.fsdp import full_state_dict
from geosd.training.loop import train
from geosd.training.process_groups import init_process_groups
from geosd.training.processes import TrainingProcesses, end_training_process
from geosd.training.resume_state import ResumeState
from geosd.training.rollout_workers import RemoteRollouts, serve_trainers
from geosd.training.run import RunInputs, assemble_run, assemble_run_worker
from geosd.training.step_log import StepLog


def inputs(tiny):
    tiny = Path(tiny)
    return tiny / "base", tiny / "train.jsonl", tiny / "pool.jsonl", 0


def trained(tiny, settings, out, ranks=None, worker=None):
    """Weights and log of a run; None on other ranks than the first."""
    run = assemble_run(RunInputs(settings, *inputs(tiny)), ranks, worker)
    args = training_arguments(settings)
    resume = ResumeState(out, settings)
    log = train(run, args, resume, lambda first: StepLog(out / "log", first))
    weights = full_state_dict(run.student)
    if isinstance(run.rollout_source, RemoteRollouts):
        run.rollout_source.end()
    return weights, log.table() if log is not None else None


def main(folder):
    """One of two processes: a trainer in shards of one, or the worker."""
    torch.set_num_threads(1)
    folder = Path(folder)
    tiny, settings = json.loads((folder / "case.json").read_text())
    with init_process_groups(workers=1) as (ranks, link):
        if ranks is None:
            worker = assemble_run_worker(RunInputs(settings, *inputs(tiny)))
            slowly(worker)
            serve_trainers(worker, link)
            (folder / "times.json").write_text(json.dumps(worker.times))
            return
        weights, log = trained(tiny, settings, folder / "across", ranks, link)
        torch.save({"weights": weights, "log": log.to_dict("list")}, folder / "across.pt")


def slowly(worker):
    """Sampling that takes as long a token as on a model of size, so that scores can be in time."""
    model = worker.local.student
    model.register_forward_pre_hook(lambda *_: time.sleep(0.02))


FINAL = 4
"""Rollouts that are measured at the end."""


def scored_in_a_step(settings):
    """Responses that a worker scores in a measured step: SFT's solutions and the student's own."""
    return 12 if settings["objective"]["name"] == "sft" else 6


def furthest(first, second):
    assert first.keys() == second.keys()
    return max((first[name] - second[name]).abs().max().item() for name in first)


@pytest.fixture(params=["geosd", "sft"])
def reference_run(tiny, settings, tmp_path, request):
    """A run without a worker: its trainer samples and scores."""
    settings |= {"objective": {"name": request.param}, "final_rollouts": FINAL}
    settings |= {"steps": 5, "learning_rate": 3e-4, "problems": 6, "response_tokens": 30}
    return trained(tiny, settings, tmp_path / "plain")


def test_a_teacher_of_another_time_is_refused_with_a_worker(tiny, settings):
    changed = RunInputs(settings | {"teacher": "fixed"}, *inputs(tiny))
    with pytest.raises(ValueError, match="training.teacher is 'fixed'"):
        assemble_run(changed, worker=object())


def test_a_process_alone_cannot_be_a_worker():
    refused = pytest.raises(ValueError, match="1 of 1 processes would sample .* none would train")
    with refused, init_process_groups(workers=1):
        pass


def test_a_response_is_reported_when_it_ends_and_the_same_is_sampled(tiny, settings):
    worker = assemble_run_worker(RunInputs(settings, *inputs(tiny)))
    sampler, prompts = worker.local.sampler, [[1, 2, 3], [4, 5], [1]] * 4
    sampling = SamplingParams(1.0, 1.0, 30)
    expected = sampler.sample(prompts, sampling, 0)
    reported, passes = {}, []
    worker.local.student.register_forward_pre_hook(lambda *_: passes.append(len(reported)))
    sampler.on_finish = reported.__setitem__
    assert sampler.sample(prompts, sampling, 0) == expected
    assert reported == {i: c for i, c in enumerate(expected) if c.finish == "stop"}
    assert 0 < passes[-1]  # some were reported before the last token was sampled


class AbsentRanks(TrainingProcesses):
    """Ranks whose other processes never come: `broadcast` waits until `released` is set."""

    released = threading.Event()

    def broadcast(self, make):
        """Wait for the others, then end the rounds."""
        make()
        self.released.wait(60)
        return []


def test_a_sampler_that_fails_waits_for_no_other_process(tiny, settings):
    """An engine without memory ended, and its worker's two processes waited for each other."""
    worker = assemble_run_worker(RunInputs(settings, *inputs(tiny)))
    worker.scorer.ranks = AbsentRanks()

    def fails(*_):
        raise RuntimeError("no memory for the engine")

    worker.local.sampler.sample = fails
    began = time.monotonic()
    with pytest.raises(RuntimeError, match="no memory for the engine"):
        worker.sample_and_score(0, ["anchor"])
    assert time.monotonic() - began < 30
    AbsentRanks.released.set()


@pytest.mark.slow
def test_a_worker_in_another_process_changes_no_step_and_scores_while_it_samples(
    tiny, settings, reference_run, tmp_path
):
    (tmp_path / "case.json").write_text(json.dumps([str(tiny), settings]))
    launch(__file__, tmp_path)
    across = torch.load(tmp_path / "across.pt", weights_only=True)
    assert furthest(across["weights"], reference_run[0]) < 1e-5
    assert across["log"]["rollout/tokens"] == reference_run[1]["rollout/tokens"].tolist()
    for name in ("drift/pi_0", "drift/anchor", "overlap"):
        assert across["log"][name] == pytest.approx(reference_run[1][name].tolist(), abs=1e-4)
    times = json.loads((tmp_path / "times.json").read_text())
    each = scored_in_a_step(settings)
    assert len(times["scored"]) == 5 * each + FINAL
    early = [
        end
        for (start, stop), n in zip(times["sampled"][:5], range(5), strict=True)
        for begin, end in times["scored"][each * n : each * (n + 1)]
        if start < begin and end < stop
    ]
    assert early


if __name__ == "__main__":
    main(sys.argv[1])
    end_training_process()
