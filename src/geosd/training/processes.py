"""The processes that train one student together, and what they tell each other.

A run on one process has no process group, and nothing here costs it anything.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, TypeVar

import torch
import torch.distributed as dist
from torch import Tensor

T = TypeVar("T")

PATIENCE = timedelta(hours=6)
"""How long a rank waits for another: the others wait while one generates or writes a checkpoint."""


@dataclass(frozen=True)
class Ranks:
    """Some processes, as one of them sees them.

    Attributes:
        group: Their process group; None is a process alone.
    """

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
    def first(self) -> bool:
        """Whether this process is the one that samples, logs and writes."""
        return self.rank == 0

    def add(self, tensor: Tensor) -> Tensor:
        """The sum over the ranks, in place, and the same bits on each."""
        if self.group is not None:
            dist.all_reduce(tensor, group=self.group)
        return tensor

    def any(self, flag: bool) -> bool:
        """Whether the flag is up on any rank."""
        return bool(self.add(torch.tensor(int(flag), device=device_here())))

    def told(self, make: Callable[[], T]) -> T:
        """What `make` gives on the first rank, on every rank."""
        if self.group is None:
            return make()
        box = [make() if self.first else None]
        dist.broadcast_object_list(box, group=self.group, group_src=0, device=device_here())
        return box[0]

    def wait(self) -> None:
        """Until every rank has come here."""
        if self.group is not None:
            dist.barrier(self.group)


@dataclass(frozen=True)
class Link:
    """Between the training ranks and the worker that samples for them: the last process.

    Attributes:
        everyone: All processes.
        pair: The first training rank and the worker, between which weights travel.
        worker: The worker's number among all.
    """

    everyone: dist.ProcessGroup
    pair: dist.ProcessGroup
    worker: int

    def tell(self, what: Any) -> None:
        """Say something to the worker; every training rank calls this, the first one is heard."""
        self._share([what], 0)

    def told(self) -> Any:
        """What the first training rank says to everyone."""
        return self._share([None], 0)

    def say(self, what: Any) -> None:
        """Say something to every training rank; the worker calls this."""
        self._share([what], self.worker)

    def hear(self) -> Any:
        """What the worker says to everyone."""
        return self._share([None], self.worker)

    def weights(self, tensor: Tensor, source: int = 0) -> Tensor:
        """Overwrite the worker's tensor by the first training rank's, or the other way round."""
        if self.everyone.rank() in (0, self.worker):
            dist.broadcast(tensor, src=source, group=self.pair)
        return tensor

    def _share(self, box: list[Any], source: int) -> Any:
        dist.broadcast_object_list(box, src=source, group=self.everyone, device=device_here())
        return box[0]


@contextmanager
def joined(worker: bool = False) -> Iterator[tuple[Ranks | None, Link | None]]:
    """All processes that torchrun has started, or this one alone.

    torchrun says by environment variables that there are others, also where they are none.

    Args:
        worker: Whether the last of several processes samples for the others.

    Yields:
        The training ranks, None in the worker; and the link to it, None where there is no worker.
    """
    if not dist.is_torchelastic_launched():
        yield Ranks(), None
        return
    device = device_here()
    if device.type == "cuda":
        torch.cuda.set_device(device)
    dist.init_process_group("nccl" if device.type == "cuda" else "gloo", timeout=PATIENCE)
    try:
        world, last = dist.group.WORLD, dist.get_world_size() - 1
        if not worker or not last:
            yield Ranks(world), None
            return
        trainers = dist.new_group(list(range(last)), timeout=PATIENCE)
        link = Link(world, dist.new_group([0, last], timeout=PATIENCE), last)
        yield None if dist.get_rank() == last else Ranks(trainers), link
    finally:
        dist.destroy_process_group()


def agreed(make: Callable[[], T]) -> T:
    """What `make` gives in the first of all joined processes, in each of them, a worker too."""
    return Ranks(dist.group.WORLD if dist.is_initialized() else None).told(make)


def device_here() -> torch.device:
    """Where this process computes: its own CUDA device, or the CPU where there is none."""
    if torch.cuda.is_available():
        return torch.device("cuda", int(os.environ.get("LOCAL_RANK", 0)))
    return torch.device("cpu")
