"""The processes that train one student together, as each of them sees the others.

A run on one process has no process group, and nothing here costs it anything.
"""

import atexit
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import NoReturn, TypeVar

import torch
import torch.distributed as dist
from accelerate import PartialState
from torch import Tensor

T = TypeVar("T")

TIMEOUT = timedelta(hours=6)
"""How long a rank waits for another: the others wait while one generates or writes a checkpoint."""


@dataclass(frozen=True)
class TrainingProcesses:
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
        reduced = torch.tensor(
            list(values.values()), dtype=torch.float64, device=training_process_device()
        )
        return dict(zip(values, self.all_reduce(reduced, op).tolist(), strict=True))

    def any(self, flag: bool) -> bool:
        """Whether the flag is up on any rank."""
        return bool(self.all_reduce(torch.tensor(int(flag), device=training_process_device())))

    def broadcast(self, make: Callable[[], T]) -> T:
        """The value of `make()` on the first rank, on every rank."""
        if self.group is None:
            return make()
        box = [make() if self.is_main else None]
        dist.broadcast_object_list(
            box, group=self.group, group_src=0, device=training_process_device()
        )
        return box[0]

    def barrier(self) -> None:
        """Wait until every rank has come here."""
        if self.group is not None:
            dist.barrier(self.group)


def end_training_process(status: int = 0) -> NoReturn:
    """End a process; one of several without the interpreter's teardown.

    Threads of gloo and autograd outlive the process groups and may still drop a tensor of Python's
    while the interpreter is torn down, which aborts the process after all its work. What was
    registered for the end runs before, such as the end of vLLM's processes.
    """
    if training_process_state().num_processes > 1:
        atexit._run_exitfuncs()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)
    sys.exit(status)


def training_process_state() -> PartialState:
    """Accelerate's state; the first call joins the process group. Without CUDA it is on the CPU."""
    return PartialState(cpu=not torch.cuda.is_available(), timeout=TIMEOUT)


def training_process_device() -> torch.device:
    """Where this process computes: its own CUDA device, or the CPU where there is none."""
    device = training_process_state().device
    return device if device.type == "cuda" else torch.device("cpu")
