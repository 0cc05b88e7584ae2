"""The process groups of a training run: the ranks that train, and the worker that samples for them.

A run on one process has none, and nothing here costs it anything.
"""

from collections.abc import Iterator
from contextlib import contextmanager

import torch.distributed as dist
from accelerate import DistributedType

from geosd.training.processes import TIMEOUT, TrainingProcesses, training_process_state
from geosd.training.rollout_workers import WorkerLink


@contextmanager
def init_process_groups(
    workers: int = 0,
) -> Iterator[tuple[TrainingProcesses | None, WorkerLink | None]]:
    """All processes that `accelerate launch` has started, or this one alone.

    The last `workers` of them sample for the others. Gives the training ranks, None in the worker;
    and the link to it, None where there is no worker. ValueError if no process is left to train.
    """
    state = training_process_state()
    if workers >= state.num_processes:
        raise ValueError(
            f"{workers} of {state.num_processes} processes would sample (--workers), and none would"
            " train.\nHint: start more processes, or let fewer of them sample."
        )
    if state.distributed_type is DistributedType.NO:
        yield TrainingProcesses(), None
        return
    try:
        world, trainers = dist.group.WORLD, state.num_processes - workers
        if not workers:
            yield TrainingProcesses(world), None
            return
        first, last = range(trainers), range(trainers, state.num_processes)
        # Every process makes every group, in this order.
        training = dist.new_group(list(first), timeout=TIMEOUT)
        transfer = dist.new_group([0, *last], timeout=TIMEOUT)
        working = dist.new_group(list(last), timeout=TIMEOUT) if workers > 1 else None
        if state.process_index < trainers:
            yield TrainingProcesses(training), WorkerLink(world, transfer, trainers, None)
        else:
            yield None, WorkerLink(world, transfer, trainers, TrainingProcesses(working))
    finally:
        state.destroy_process_group()
