"""A worker of several processes with sharded models, against a single process.

Run as a program, this file is what each of the processes does.
"""

import json
import runpy
import shutil
import sys
from pathlib import Path

import pytest
import torch
from cases import launch

from geosd.training.process_groups import init_process_groups
from geosd.training.processes import TrainingProcesses, end_training_process
from geosd.training.rollout_workers import serve_trainers
from geosd.training.run import RunInputs, assemble_run_worker

RANKS = runpy.run_path(str(Path(__file__).with_name("test_ranks.py")))
CASES = ("geosd", "geosd, a factor without an inverse")
BEFORE = RANKS["BEFORE"]


def main(folder, workers):
    """One process: runs from the beginning, or, where runs were left, from there."""
    torch.set_num_threads(1)
    folder, workers = Path(folder), int(workers)
    tiny, runs = json.loads((folder / "runs.json").read_text())
    with init_process_groups(workers) as (ranks, link):
        for name, (settings, steps) in runs.items():
            if ranks is None:
                serve_run(tiny, settings, link, folder / f"{name} scored {link.worker.rank}.json")
                continue
            singular = name.endswith("without an inverse")
            found = RANKS["five_steps"](ranks, settings, tiny, folder / name, steps, singular, link)
            RANKS["save"](found, folder / f"{name}.pt")


def serve_run(tiny, settings, link, report):
    """Be the worker of one run, and report how many responses this process has scored."""
    tiny = Path(tiny)
    inputs = (tiny / "base", tiny / "train.jsonl", tiny / "pool.jsonl", 0)
    worker = assemble_run_worker(RunInputs(settings, *inputs), link.worker)
    worker.local = RANKS["with_rewards"](worker.local)
    if link.worker.size > 1:  # no process has a whole model
        for model in (worker.local.student, *worker.frozen.values()):
            local = sum(each.to_local().numel() for each in model.parameters())
            assert local < 0.6 * sum(each.numel() for each in model.parameters())
    serve_trainers(worker, link)
    report.write_text(json.dumps(len(worker.times["scored"])))


def start(folder, tiny, runs, processes, workers):
    """Start the processes of some runs: name -> settings and steps; wait for their end."""
    (folder / "runs.json").write_text(json.dumps([str(tiny), runs]))
    launch(__file__, folder, workers, processes=processes)


@pytest.mark.slow
def test_two_trainers_and_two_workers_take_the_steps_of_one_process(
    tiny, settings, tmp_path, capsys
):
    cases = {name: RANKS["settings_of"](settings, name) for name in CASES}
    left = cases["geosd"]
    runs = {name: (values, 5 if name == "geosd" else 3) for name, values in cases.items()}
    start(tmp_path, tiny, {**runs, "left": (left, BEFORE)}, processes=4, workers=2)
    measured, whole = {}, None
    for name, values in cases.items():
        double = torch.load(tmp_path / f"{name}.pt", weights_only=True)
        singular = name.endswith("without an inverse")
        out, steps = tmp_path / f"one {name}", runs[name][1]
        single = RANKS["five_steps"](TrainingProcesses(), values, tiny, out, steps, singular)
        whole = single if name == "geosd" else whole
        assert ("update/skipped" in single["log"]) == singular
        lengths = single["log"]["rollout/tokens"]
        assert (lengths < values["response_tokens"]).any()  # sequences of unequal length
        measured[name] = RANKS["compare"](single, double)
        # Four responses of each step and of the end, each scored by one process or more.
        scored = [json.loads((tmp_path / f"{name} scored {i}.json").read_text()) for i in (0, 1)]
        assert sum(scored) >= 4 * (steps + 1) and min(scored) > 0

    # What four processes left, two and one end.
    shutil.copytree(tmp_path / "left", tmp_path / "alone")
    alone = RANKS["five_steps"](TrainingProcesses(), left, tiny, tmp_path / "alone", 5)
    start(tmp_path, tiny, {"left": (left, 5)}, processes=2, workers=1)
    pair = torch.load(tmp_path / "left.pt", weights_only=True)
    assert alone["log"].index.tolist() == whole["log"].index.tolist() == [0, 1, 2, 3, 4, 5]
    for name, ended in {"4 to 1": alone, "4 to 2": pair}.items():
        measured[name] = {
            kind: RANKS["furthest"](ended[kind], whole[kind]) for kind in ("factors", "weights")
        }
    with capsys.disabled():
        print()
        for name, apart in measured.items():
            print(name, {kind: f"{value:.1e}" for kind, value in apart.items()})
    assert max(max(apart.values()) for apart in measured.values()) < 1e-5


if __name__ == "__main__":
    main(*sys.argv[1:])
    end_training_process()
