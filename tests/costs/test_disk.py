"""The peak of a study on disk: against a schedule simulated event by event, and by hand."""

from __future__ import annotations

import heapq
import random
from dataclasses import replace

import pytest

from geosd.costs.assumptions import DEFAULTS
from geosd.costs.memory_and_disk import peak_disk, state_bytes, weights_on_disk
from geosd.costs.update_operations import UpdateOperationsSize
from geosd.costs.workload import (
    KfacWorkload,
    ModelWorkload,
    SamplingWorkload,
    StoredWeightsWorkload,
    TrainingWorkload,
)

N = 8_190_735_360  # counted from the released weights
OPSD = TrainingWorkload(
    625, UpdateOperationsSize(8, 4096), 4096, True, {"teacher"}, None, True, 1024, 1
)
GEOSD = replace(OPSD, kfac=KfacWorkload(16, 1 / 8, "float32"))
WORK = ModelWorkload(
    model="qwen3-8b",
    jobs={"base": 1, "train": 90, "evaluate": 90, "evaluate_pi_0": 10},
    gpu_requests={},
    pool=SamplingWorkload(0, 1),
    evaluation=SamplingWorkload(1000, 8192),
    trainings={"fwdkl": OPSD},
    stored=StoredWeightsWorkload(2, 90, 1),
)


def simulated(runs, jobs, trainings, files, seconds):
    """Most files at once where readers of weights, one a file, go before new trainings.

    A training holds its run's files from its start; a file goes when its reader ends.
    """
    events, now, waiting, held, most = [], 0.0, 0, 0, 0
    training, running = 0, 0
    while runs or events or waiting:
        while running < jobs and (waiting or (runs and training < trainings)):
            kind = "read" if waiting else "train"
            heapq.heappush(events, (now + seconds(kind), kind))
            running += 1
            if kind == "read":
                waiting -= 1
            else:
                runs, training, held = runs - 1, training + 1, held + files
                most = max(most, held)
        now, kind = heapq.heappop(events)
        running -= 1
        if kind == "train":
            training, waiting = training - 1, waiting + files
        else:
            held -= 1
    return most


@pytest.mark.parametrize("files", [1, 3])
def test_no_schedule_holds_more_than_the_bound(files):
    draw = random.Random(0)
    for _ in range(300):
        jobs, trainings = draw.randint(1, 6), draw.randint(1, 4)
        long = draw.choice([1, 10, 100])  # evaluations that are as long, and far longer

        def seconds(kind, long=long):
            return draw.expovariate(1.0) * (long if kind == "read" else 1)

        most = simulated(20, jobs, trainings, files, seconds)
        assert most <= weights_on_disk(jobs, trainings, 1, files)


def test_long_evaluations_hold_exactly_the_bound():
    def seconds(kind):
        return 1000.0 if kind == "read" else 1.0

    # Five jobs, two of them trainings: three files are read while two runs are trained.
    assert simulated(20, 5, 2, 1, seconds) == 5 == weights_on_disk(5, 2, 1, 1)
    assert simulated(20, 5, 2, 3, seconds) == 9 == weights_on_disk(5, 2, 1, 3)


def test_a_training_keeps_two_states_of_fourteen_bytes_a_parameter():
    assert state_bytes(WORK) == 2 * 14 * N
    # Table kfac_memory counts seven inputs a block; K-FAC keeps four, and averages and inverses.
    assert 2 * 14 * N < state_bytes(replace(WORK, trainings={"geosd": GEOSD})) < 2 * 16 * N


def test_the_parts_of_a_peak_by_hand():
    assumed = replace(DEFAULTS, length=0.5)
    parts = {part.name: part.bytes for part in peak_disk([WORK], "samples", 10, 2, assumed)}
    assert parts == {
        "base models": 2 * N,
        "states to go on from": 2 * 2 * 14 * N,
        "weights": 10 * 2 * N,
        "samples": 100 * 1000 * 8192 * 0.5 * 4,
        "weights for other studies": 0,
    }
    every = peak_disk([WORK], "weights", 10, 2, assumed)
    assert next(part.bytes for part in every if part.name == "weights") == 90 * 2 * N


def test_an_alignment_holds_all_files_of_a_run_and_no_more_are_held_than_there_are():
    aligned = replace(
        WORK, jobs=WORK.jobs | {"alignment": 5}, stored=StoredWeightsWorkload(2, 450, 5, 7)
    )
    parts = {part.name: part.bytes for part in peak_disk([aligned], "samples", 10, 2, DEFAULTS)}
    assert parts["weights"] == 10 * 5 * 2 * N
    assert parts["weights for other studies"] == 7 * 2 * N
    small = replace(WORK, stored=StoredWeightsWorkload(2, 3, 1))
    parts = {p.name: p.bytes for p in peak_disk([small], "samples", 10, 2, DEFAULTS)}
    assert parts["weights"] == 6 * N
    one = replace(small, jobs=WORK.jobs | {"train": 1})
    parts = {p.name: p.bytes for p in peak_disk([one], "samples", 10, 2, DEFAULTS)}
    assert parts["states to go on from"] == 2 * 14 * N
