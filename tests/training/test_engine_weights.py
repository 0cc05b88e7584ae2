"""Weights on their way from trainers by a rollout worker to an engine, over shared memory.

The engine is a stand-in: a model of its own, which each of its workers fills from the buffer on the
device that it is on. What moves the weights is the project's own, the shared memory is the
machine's. Run as a program, this file is what each of the processes does.
"""

import json
import sys
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from cases import launch
from torch import distributed

from geosd.models.load_and_save import load_model, weights_as_saved
from geosd.sampling import weight_delivery
from geosd.sampling.shared_buffers import open_shared
from geosd.sampling.transformers_sampler import TransformersSampler
from geosd.sampling.vllm_sampler import VllmEngine, VllmSampler
from geosd.sampling.weight_delivery import WeightDelivery, unpacked_weights
from geosd.training import process_groups, processes
from geosd.training.arguments import training_arguments
from geosd.training.loop import train
from geosd.training.process_groups import init_process_groups
from geosd.training.processes import TrainingProcesses, end_training_process
from geosd.training.resume_state import ResumeState
from geosd.training.rollout_workers import RemoteRollouts, serve_trainers
from geosd.training.run import RunInputs, assemble_run, assemble_run_worker
from geosd.training.step_log import StepLog

STEPS, PART = 2, 3000
CPU = torch.device("cpu")
DEADLOCK = 15
"""Seconds after which a process that waits for another gives up, where it is to wait in vain."""


class StandInEngine:
    """An engine of several workers, each with the whole model; what they open is noted."""

    def __init__(self, base, workers):
        self.models = [load_model(base)[0] for _ in range(workers)]
        self.opened = []

    def collective_rpc(self, method, timeout, args):
        assert method == "opens_shared"
        (handles,) = args
        return [len(open_shared(handles[name], CPU, torch.uint8)) == 1 for name in handles]

    def start_weight_update(self):
        self.missing = {name for name, _ in weights_as_saved(self.models[0])}

    @torch.no_grad()
    def update_weights(self, request):
        part = request["update_info"]
        for number, model in enumerate(self.models):
            handle = part["handles"][f"card {number}"]
            assert all(isinstance(value, int | bytes | bool) for value in handle)
            buffer = open_shared(handle, CPU, getattr(torch, part["dtype"]))
            self.opened.append(f"card {number}")
            for name, value in unpacked_weights(part["names"], part["shapes"], buffer).items():
                model.get_parameter(name).copy_(value)
        self.missing -= set(part["names"])

    def finish_weight_update(self, weight_version):
        assert not self.missing
        first, *others = (dict(weights_as_saved(model)) for model in self.models)
        assert all(torch.equal(first[name], each[name]) for each in others for name in first)

    def reset_prefix_cache(self):
        return True


class EngineSampler(VllmSampler):
    """vLLM's sampler but for vLLM: the stand-in's last model is sampled by transformers."""

    def sample_chunks(self, batches, sampling, finished=()):
        self.sync(self.weights())
        model = self.engine.llm.models[-1]
        if self.delivery.group is None:  # of shards this process alone has no whole weight
            students = dict(self.weights())
            engines = dict(weights_as_saved(model))
            assert students.keys() == engines.keys()
            assert all(torch.equal(students[name], engines[name]) for name in students)
        sampler = TransformersSampler(model, self.end_ids, pad_id=0)
        sampler.on_finish = self.on_finish
        return sampler.sample_chunks(batches, sampling, finished)


def inputs(tiny):
    tiny = Path(tiny)
    return tiny / "base", tiny / "train.jsonl", tiny / "pool.jsonl", 0


def with_engine(worker, link, base, group):
    """A rollout worker whose engine has as many workers as the rollout worker has processes."""
    size = link.worker.size
    here = f"card {link.worker.rank}"
    weight_delivery.buffer_device_name = lambda device: here
    engine = StandInEngine(base, size)
    started = VllmEngine(engine, SimpleNamespace, 512, torch.float32, {"engine": "stand-in"})
    student = worker.local.student
    sampler = EngineSampler(
        lambda: started,
        worker.local.encoding.end_ids,
        weights=lambda: weights_as_saved(student, torch.float32),
        delivery=WeightDelivery(by_memory=True, devices=size, group=group, part_bytes=PART),
    )
    object.__setattr__(worker.local, "sampler", sampler)
    return engine


def main(folder, workers, group_of):
    """One process: a trainer, or one of the worker's."""
    torch.set_num_threads(1)
    folder, workers = Path(folder), int(workers)
    tiny, settings = json.loads((folder / "case.json").read_text())
    run_inputs = RunInputs(settings, *inputs(tiny))
    if group_of == "everyone":
        processes.TIMEOUT = process_groups.TIMEOUT = timedelta(seconds=DEADLOCK)
    with init_process_groups(workers) as (ranks, link):
        if ranks is not None:
            log = trained(run_inputs, folder / "trained", ranks, link)
            if log is not None:
                (folder / "log.json").write_text(json.dumps(log.to_dict("list")))
            return
        worker = assemble_run_worker(run_inputs, link.worker)
        group = distributed.group.WORLD if group_of == "everyone" else link.worker.group
        engine = with_engine(worker, link, run_inputs.base, group)
        try:
            serve_trainers(worker, link)
        except RuntimeError as error:
            waited = "began" if hasattr(engine, "missing") else "did not begin"
            (folder / "deadlock.txt").write_text(f"the update {waited}: {error}")
            raise
        if link.worker.is_main:
            report = {"opened": engine.opened, "record": worker.local.sampler.record()}
            (folder / "engine.json").write_text(json.dumps(report))


def trained(run_inputs, out, ranks, link=None):
    """The step log of a run of some steps; None on other ranks than the first."""
    run = assemble_run(run_inputs, ranks, link)
    resume = ResumeState(out, run_inputs.settings)
    args = training_arguments(run_inputs.settings)
    log = train(run, args, resume, lambda first: StepLog(out / "log", first))
    if isinstance(run.rollout_source, RemoteRollouts):
        run.rollout_source.end()
        if ranks.is_main:
            (out / "record.json").write_text(json.dumps(run.rollout_source.record()))
    return log.table() if log is not None else None


@pytest.fixture
def case(tiny, settings, tmp_path):
    """Settings of a short run, and the folder that has them for its processes."""
    settings |= {"steps": STEPS, "problems": 4, "learning_rate": 3e-4}
    (tmp_path / "case.json").write_text(json.dumps([str(tiny), settings]))
    return RunInputs(settings, *inputs(tiny)), tmp_path


@pytest.mark.slow
@pytest.mark.parametrize("workers", [1, 2])
def test_two_trainers_and_a_worker_sample_from_the_weights_of_each_step(case, workers):
    run_inputs, folder = case
    alone = trained(run_inputs, folder / "alone", TrainingProcesses())
    launch(__file__, folder, workers, "worker", processes=2 + workers)
    log = json.loads((folder / "log.json").read_text())
    for name in ("rollout/tokens", "loss/total", "drift/pi_0"):
        expected = pytest.approx(alone[name].tolist(), rel=1e-2, abs=1e-6, nan_ok=True)
        assert log[name] == expected, name
    assert "sync/gb" not in alone

    report = json.loads((folder / "engine.json").read_text())
    parameters = dict(weights_as_saved(load_model(run_inputs.base)[0]))
    nbytes = sum(value.nbytes for value in parameters.values())
    assert log["sync/gb"] == log["sync/worker/gb"] == pytest.approx([nbytes / 1e9] * (STEPS + 1))
    assert all(value > 0 for value in log["sync/seconds"] + log["sync/worker/seconds"])
    record = report["record"]
    assert record["weight_way"] == "memory" and record["weight_syncs"] == STEPS + 1
    assert record["weight_gb"] == pytest.approx(nbytes * (STEPS + 1) / 1e9)
    parts = len(report["opened"]) / workers / (STEPS + 1)
    assert parts > 2 and set(report["opened"]) == {f"card {i}" for i in range(workers)}
    of_run = json.loads((folder / "trained" / "record.json").read_text())
    assert of_run["to_worker"]["syncs"] == of_run["to_engine"]["syncs"] == STEPS + 1


@pytest.mark.slow
def test_handles_gathered_over_the_default_group_wait_for_the_trainers_in_vain(case):
    """As vLLM's own trainer class gathers them: the trainers wait for responses, and not there."""
    _, folder = case
    with pytest.raises(AssertionError):
        launch(__file__, folder, 1, "everyone", processes=3)
    told = (folder / "deadlock.txt").read_text()
    assert told.startswith("the update began") and "imed out" in told
    assert not (folder / "log.json").exists()


if __name__ == "__main__":
    main(*sys.argv[1:])
    end_training_process()
