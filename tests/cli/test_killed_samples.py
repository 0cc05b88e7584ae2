"""The programs of the rules `evaluate`, `pool` and `states`, killed and told to stop."""

import functools
import json
import os
import random
import signal
import subprocess
import sys
import time
from itertools import count

import pytest
import yaml

from geosd.cli import evaluate, pool, states
from geosd.config import load
from geosd.provenance import code, manifest
from geosd.sampling.transformers_sampler import TransformersSampler

ROWS, KILLS = 4, 10
PROGRAMS = {"evaluate": evaluate, "pool": pool, "states": states}


@pytest.fixture(params=PROGRAMS)
def program(request):
    return request.param


@pytest.fixture
def options(small, tmp_path, program):
    """The options of a program by its folder, with small batches and short responses."""
    values = yaml.safe_load(small.shared["params"].read_text())
    quick = values["studies"]["quick"]
    quick["rollout"] |= {"sequences": ROWS, "compile": False}
    quick["evaluation"] |= {"samples": 2, "pass_k": [1, 2], "response_tokens": 8}
    quick["pool"]["response_tokens"] = 8
    quick["training"] |= {"response_tokens": 8, "problems": ROWS}
    params = tmp_path / "params.yaml"
    params.write_text(yaml.safe_dump(values))
    own = {"base": small.base, "problems": small.train}
    if program == "evaluate":
        own = {"checkpoint": small.base, "problems": small.folder / "data/test.jsonl"}
        own |= {"variant": "pi_0", "seed": 0}
    if program == "states":
        own |= {"pool": small.folder / "pool.jsonl"}
    own |= {"study": "quick", "model": "mini-qwen3", "params": params}
    return lambda folder: {**own, "out": folder / "out", "scratch": folder / "scratch"}


@pytest.fixture
def prepared(options, tmp_path, monkeypatch):
    """What is the same in each life, done once: the parameters read, the code hashed."""
    cached = functools.cache(load)
    cached(options(tmp_path)["params"])
    monkeypatch.setattr("geosd.cli.job.load", cached)
    monkeypatch.setattr(code, "code_of", lambda *_: {})
    monkeypatch.setattr(manifest, "code_of", lambda *_: {})
    monkeypatch.setattr(code, "_git", lambda *_: None)


def life(work, folder, moment=0):
    """Do `work` in a process that is killed at a moment; its exit status.

    Moments are before and after a batch is sampled, and before a file is synced or renamed. Notes
    in the folder say how many there were, and how many prompts were sampled.
    """
    folder.mkdir(exist_ok=True)
    child = os.fork()
    if child == 0:
        moments, main, sample = count(1), os.getpid(), TransformersSampler._sample_together

        def tick():
            if next(moments) == moment:
                os.kill(main, signal.SIGKILL)

        def before(operation):
            def call(*arguments):
                tick()
                return operation(*arguments)

            return call

        def sampled(self, batch, places, sampling):
            done = before(sample)(self, batch, places, sampling)
            with (folder / "sampled").open("a") as notes:
                notes.write(f"{len(places)}\n")
            tick()
            return done

        status = 1
        try:
            os.fsync, os.replace = before(os.fsync), before(os.replace)
            TransformersSampler._sample_together = sampled
            work()
            (folder / "moments").write_text(str(next(moments) - 1))
            status = 0
        finally:  # or an error would let pytest go on in the fork
            os._exit(status)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def results(folder):
    """What a program wrote; of its manifest not the time, the memory and what holds them."""
    found = {path.name: path.read_bytes() for path in (folder / "out").iterdir()}
    values = json.loads(found.pop("manifest.json"))
    return found, {k: v for k, v in values.items() if k[:4] not in ("wall", "peak", "dige")}


def sampled(folder):
    return sum(map(int, (folder / "sampled").read_text().split()))


@pytest.mark.slow
def test_a_job_killed_anywhere_ends_with_the_same_bytes_and_samples_one_chunk_twice_at_most(
    program, options, prepared, tmp_path
):
    def work(folder):
        return lambda: PROGRAMS[program].main(**options(folder))

    whole = tmp_path / "whole"
    assert life(work(whole), whole) == 0
    moments, draw, twice = int((whole / "moments").read_text()), random.Random(0), 0
    for number in range(KILLS):
        folder = tmp_path / str(number)
        assert life(work(folder), folder, draw.randint(1, moments)) == -signal.SIGKILL
        if not (folder / "scratch/samples").exists():  # the first chunk was not even kept
            assert not (folder / "sampled").exists() or sampled(folder) == ROWS
        assert life(work(folder), folder) == 0
        assert results(folder) == results(whole), number
        again = sampled(folder) - sampled(whole)
        assert again in range(ROWS + 1)
        twice += bool(again)
        assert not list((folder / "scratch").iterdir())
    assert twice  # some were killed between a batch and its file


@pytest.mark.slow
def test_sigterm_ends_a_job_with_its_samples_kept_and_the_status_of_trainings(
    program, options, tmp_path
):
    assert life(lambda: PROGRAMS[program].main(**options(tmp_path / "whole")), tmp_path) == 0
    words = [f"--{k}={v}" for k, v in options(tmp_path / "stopped").items()]
    command = [sys.executable, "-m", "geosd", program, *words]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    kept = tmp_path / "stopped/scratch/samples"
    while not (kept / "000000.jsonl").exists():
        assert process.poll() is None
        time.sleep(0.002)
    process.send_signal(signal.SIGTERM)
    _, stderr = process.communicate(timeout=300)
    assert process.returncode == 75, stderr
    assert "asked to stop after" in stderr and "Traceback" not in stderr
    assert not (tmp_path / "stopped/out").exists() and kept.exists()
    resumed = tmp_path / "resumed"
    assert life(lambda: PROGRAMS[program].main(**options(tmp_path / "stopped")), resumed) == 0
    assert sampled(resumed) < sampled(tmp_path)  # by what was kept
    assert results(tmp_path / "stopped")[0] == results(tmp_path / "whole")[0]
