"""The processes that train one student together, and what they tell each other.

A run on one process has no process group, and nothing here costs it anything.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import TypeVar

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


@contextmanager
def joined() -> Iterator[Ranks]:
    """All processes that torchrun has started, or this one alone.

    torchrun says by environment variables that there are others, also where they are none.
    """
    if not dist.is_torchelastic_launched():
        yield Ranks()
        return
    device = device_here()
    if device.type == "cuda":
        torch.cuda.set_device(device)
    dist.init_process_group("nccl" if device.type == "cuda" else "gloo", timeout=PATIENCE)
    try:
        yield Ranks(dist.group.WORLD)
    finally:
        dist.destroy_process_group()


def device_here() -> torch.device:
    """Where this process computes: its own CUDA device, or the CPU where there is none."""
    if torch.cuda.is_available():
        return torch.device("cuda", int(os.environ.get("LOCAL_RANK", 0)))
    return torch.device("cpu")
