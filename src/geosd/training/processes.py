"""The processes that train one student together, and those that sample for them.

A run on one process has no process group, and nothing here costs it anything.
"""

import atexit
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, NoReturn, TypeVar

import torch
import torch.distributed as dist
from accelerate import DistributedType, PartialState
from torch import Tensor

T = TypeVar("T")

TIMEOUT = timedelta(hours=6)
"""How long a rank waits for another: the others wait while one generates or writes a checkpoint."""


@dataclass(frozen=True)
class Ranks:
    """The training processes, as one of them sees them; without a group it is alone."""

    group: dist.ProcessGroup | None = None

    @property
    def rank(self) -> int:
        """The number of this process among them, from 0."""
        return 0 if self.group is None else self.group.rank()

    @property
    def size(self) -> int:
        """How many they are."""
        return 1 if self.group is None else self.group.size()

    @property
    def is_main(self) -> bool:
        """Whether this process is the one that samples, logs and writes."""
        return self.rank == 0

    def all_reduce(self, tensor: Tensor, op: dist.ReduceOp.RedOpType = dist.ReduceOp.SUM) -> Tensor:
        """The sum (or another operation) over the ranks, in place, and the same bits on each."""
        if self.group is not None:
            dist.all_reduce(tensor, op, group=self.group)
        return tensor

    def reduce_values(
        self, values: dict[str, float], op: dist.ReduceOp.RedOpType = dist.ReduceOp.SUM
    ) -> dict[str, float]:
        """The sum (or another operation) over the ranks of each value."""
        reduced = torch.tensor(list(values.values()), dtype=torch.float64, device=local_device())
        return dict(zip(values, self.all_reduce(reduced, op).tolist(), strict=True))

    def any(self, flag: bool) -> bool:
        """Whether the flag is up on any rank."""
        return bool(self.all_reduce(torch.tensor(int(flag), device=local_device())))

    def broadcast(self, make: Callable[[], T]) -> T:
        """The value of `make()` on the first rank, on every rank."""
        if self.group is None:
            return make()
        box = [make() if self.is_main else None]
        dist.broadcast_object_list(box, group=self.group, group_src=0, device=local_device())
        return box[0]

    def barrier(self) -> None:
        """Wait until every rank has come here."""
        if self.group is not None:
            dist.barrier(self.group)


@dataclass(frozen=True)
class WorkerLink:
    """Links the processes that train to those that sample, the last ones, by process groups.

    Weights travel in `transfer`, the first training rank and the worker's. `trainers` processes
    train; `worker` are the worker's, as one of them sees them, None in a training rank.
    """

    everyone: dist.ProcessGroup
    transfer: dist.ProcessGroup
    trainers: int
    worker: Ranks | None

    def share_command(self, command: tuple[Any, ...] | None = None) -> Any:
        """The first training rank's command; every process calls this, the worker without one."""
        return self._broadcast(command, 0)

    def share_rollouts(self, rollouts: Any = None) -> Any:
        """The rollouts of the worker's first process; all others call this without any."""
        return self._broadcast(rollouts, self.trainers)

    def copy_to_worker(self, tensor: Tensor, source: int = 0) -> Tensor:
        """Overwrite the worker's tensors by the first training rank's; every process calls this."""
        if self.everyone.rank() == 0 or self.worker is not None:
            dist.broadcast(tensor, src=source, group=self.transfer)
        return tensor

    def copy_from_worker(self, tensor: Tensor) -> Tensor:
        """Overwrite the first training rank's tensor by the worker's; every process calls this."""
        return self.copy_to_worker(tensor, source=self.trainers)

    def _broadcast(self, value: Any, source: int) -> Any:
        box = [value]
        dist.broadcast_object_list(box, src=source, group=self.everyone, device=local_device())
        return box[0]


@contextmanager
def init_processes(workers: int = 0) -> Iterator[tuple[Ranks | None, WorkerLink | None]]:
    """All processes that `accelerate launch` has started, or this one alone.

    The last `workers` of them sample for the others. Gives the training ranks, None in the worker;
    and the link to it, None where there is no worker. ValueError if no process is left to train.
    """
    state = process_state()
    if workers >= state.num_processes:
        raise ValueError(
            f"{workers} of {state.num_processes} processes would sample (--workers), and none would"
            " train.\nHint: start more processes, or let fewer of them sample."
        )
    if state.distributed_type is DistributedType.NO:
        yield Ranks(), None
        return
    try:
        world, trainers = dist.group.WORLD, state.num_processes - workers
        if not workers:
            yield Ranks(world), None
            return
        first, last = range(trainers), range(trainers, state.num_processes)
        # Every process makes every group, in this order.
        training = dist.new_group(list(first), timeout=TIMEOUT)
        transfer = dist.new_group([0, *last], timeout=TIMEOUT)
        working = dist.new_group(list(last), timeout=TIMEOUT) if workers > 1 else None
        if state.process_index < trainers:
            yield Ranks(training), WorkerLink(world, transfer, trainers, None)
        else:
            yield None, WorkerLink(world, transfer, trainers, Ranks(working))
    finally:
        state.destroy_process_group()


def end_process(status: int = 0) -> NoReturn:
    """End a process; one of several without the interpreter's teardown.

    Threads of gloo and autograd outlive the process groups and may still drop a tensor of Python's
    while the interpreter is torn down, which aborts the process after all its work. What was
    registered for the end runs before, such as the end of vLLM's processes.
    """
    if process_state().num_processes > 1:
        atexit._run_exitfuncs()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)
    sys.exit(status)


def process_state() -> PartialState:
    """Accelerate's state; the first call joins the process group. Without CUDA it is on the CPU."""
    return PartialState(cpu=not torch.cuda.is_available(), timeout=TIMEOUT)


def local_device() -> torch.device:
    """Where this process computes: its own CUDA device, or the CPU where there is none."""
    device = process_state().device
    return device if device.type == "cuda" else torch.device("cpu")
