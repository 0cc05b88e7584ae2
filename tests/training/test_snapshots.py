"""Snapshots are the weights on the way, and looking at them changes nothing."""

import json
import os
import signal

import pytest

from geosd.models.load_and_save import save_model, save_weights
from geosd.seeds import seed_of
from geosd.training.arguments import training_arguments
from geosd.training.loop import train
from geosd.training.resume_state import ResumeState, Snapshots
from geosd.training.run import RunInputs, assemble_run
from geosd.training.step_log import StepLog


@pytest.fixture
def settings(settings):
    """Shorter responses, which are most of the time of a step."""
    return settings | {"response_tokens": 6}


def run_to_end(tiny, settings, folder, snapshots=None, die_at=None):
    run = assemble_run(
        RunInputs(settings, tiny / "base", tiny / "train.jsonl", tiny / "pool.jsonl", 0)
    )
    sample = run.rollout_source.sampler.sample

    def sample_or_die(prompts, sampling, seed):
        if die_at is not None and seed == seed_of(0, "rollout", die_at):
            os.kill(os.getpid(), signal.SIGKILL)
        return sample(prompts, sampling, seed)

    run.rollout_source.sampler.sample = sample_or_die
    resume = ResumeState(folder, settings)
    log = train(
        run,
        training_arguments(settings),
        resume,
        lambda step: StepLog(folder / "log", step),
        snapshots,
    )
    save_model(run.student, run.encoding.tokenizer, folder / "out")
    log.table().to_csv(folder / "steps.csv")
    return run.student


def killed(work):
    child = os.fork()
    if child == 0:
        work()
        os._exit(0)
    return os.WTERMSIG(os.waitpid(child, 0)[1]) == signal.SIGKILL


def bytes_of(folder):
    return [(folder / name).read_bytes() for name in ("out/model.safetensors", "steps.csv")]


def kept(folder):
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


@pytest.mark.slow
def test_keeping_snapshots_changes_no_byte_of_the_run(tiny, settings, tmp_path):
    run_to_end(tiny, settings, tmp_path / "without")
    run_to_end(tiny, settings, tmp_path / "with", Snapshots(tmp_path / "kept", [1, 4]))
    assert bytes_of(tmp_path / "without") == bytes_of(tmp_path / "with")
    names = [f"step_{step}.{suffix}" for step in (1, 4) for suffix in ("json", "safetensors")]
    assert list(kept(tmp_path / "kept")) == names


def test_a_snapshot_is_the_weights_and_the_measurement_that_a_run_of_that_many_steps_ends_with(
    tiny, settings, tmp_path
):
    run_to_end(tiny, settings, tmp_path / "long", Snapshots(tmp_path / "kept", [4]))
    short = run_to_end(tiny, settings | {"steps": 4}, tmp_path / "short")
    save_weights(short, tmp_path / "expected")
    assert kept(tmp_path / "kept")["step_4.safetensors"] == (tmp_path / "expected").read_bytes()
    measured = json.loads((tmp_path / "kept/step_4.json").read_text())
    header, *_, last = (tmp_path / "short/steps.csv").read_text().splitlines()
    logged = dict(zip(header.split(","), last.split(","), strict=True))
    written = {"step": "4", **{name: repr(value) for name, value in measured.items()}}
    assert {name: text for name, text in logged.items() if text} == written


@pytest.mark.slow
def test_a_killed_run_ends_with_the_snapshots_of_one_never_killed(tiny, settings, tmp_path):
    every = range(1, settings["steps"] + 1)
    run_to_end(tiny, settings, tmp_path / "whole", Snapshots(tmp_path / "a", every))
    snapshots = Snapshots(tmp_path / "b", every)
    for step in (1, 4, 5):  # before the first state, right after one, and between two
        assert killed(lambda at=step: run_to_end(tiny, settings, tmp_path / "k", snapshots, at))
    run_to_end(tiny, settings, tmp_path / "k", snapshots)
    assert kept(tmp_path / "a") == kept(tmp_path / "b")
    assert bytes_of(tmp_path / "whole") == bytes_of(tmp_path / "k")


@pytest.mark.slow
def test_a_state_whose_snapshots_are_gone_is_not_continued(tiny, settings, tmp_path):
    snapshots = Snapshots(tmp_path / "kept", [2, 4])
    assert killed(lambda: run_to_end(tiny, settings, tmp_path / "k", snapshots, 5))
    whole = kept(tmp_path / "kept")
    snapshots.path(2).unlink()
    run_to_end(tiny, settings, tmp_path / "k", snapshots)
    assert kept(tmp_path / "kept") == whole


@pytest.mark.slow
def test_snapshots_of_an_earlier_run_do_not_outlive_a_new_one(tiny, settings, tmp_path):
    run_to_end(tiny, settings, tmp_path / "1", Snapshots(tmp_path / "kept", [1, 2]))
    run_to_end(tiny, settings, tmp_path / "2", Snapshots(tmp_path / "kept", [3]))
    assert list(kept(tmp_path / "kept")) == ["step_3.json", "step_3.safetensors"]
