"""How the weights of a model in training get into vLLM's workers.

Where a worker of vLLM and a process that holds the model, or a part of it, are on one card, the
worker reads a buffer of that process's memory on the card ("memory"). Elsewhere the weights go
through files in the host's memory ("files"): on a CPU, where the engine runs in the process of the
model itself, and where a worker could not open such a buffer.

Several processes that hold one model in shards gather it together. Each has the whole of a weight
for a moment, and shares it with the worker on its own card. They are the processes of `group` and
no others: where a rollout worker samples, the trainers are in the default group too, and they wait
for its responses and not for its weights.

vLLM's own way from process to process by NCCL serves no placement here: a worker of vLLM is always
on the card of the process that starts the engine, and NCCL refuses two processes on one card.
Between cards and nodes the trainers have sent the weights to the rollout worker before, by NCCL.
"""

import tempfile
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from shutil import disk_usage
from typing import Any, Literal, NamedTuple, Protocol

import torch
import torch.distributed as dist
from safetensors.torch import save_file
from torch import Tensor

from geosd.sampling.shared_buffers import (
    Handle,
    buffer_device_name,
    collect_shared_buffers,
    share_buffer,
)

PART_BYTES = 2**30
"""Bytes of weights after which a part of them is sent: what the way holds, not what arrives."""
Weights = Iterable[tuple[str, Tensor]]
Way = Literal["memory", "files"]


class DeliveryEngine(Protocol):
    """What a delivery calls of vLLM's `LLM`."""

    def update_weights(self, request: dict[str, Any]) -> None:
        """Load a part of the weights, in every worker."""

    def collective_rpc(self, method: str, timeout: float | None, args: tuple[Any, ...]) -> list:
        """The result of a method of `WorkerExtension` on every worker."""


class _PackedPart(NamedTuple):
    """Some weights in one buffer, one after the other, all of its type."""

    names: list[str]
    shapes: list[list[int]]
    buffer: Tensor


@dataclass
class Delivered:
    """What deliveries have sent, each and all together, for the step log and the manifest.

    `seconds` are of the process that sends, and last until the engine has the weights in place.
    """

    syncs: int = 0
    way: Way | None = None
    bytes: int = 0
    seconds: float = 0.0
    all_bytes: int = 0
    all_seconds: float = 0.0

    def add(self, nbytes: int, seconds: float) -> None:
        """Count one more."""
        self.syncs += 1
        self.bytes, self.seconds = nbytes, seconds
        self.all_bytes += nbytes
        self.all_seconds += seconds

    def log_values(self, name: str = "sync") -> dict[str, float]:
        """Of the last one, for the step log: GB and seconds; empty before the first."""
        if not self.syncs:
            return {}
        return {f"{name}/gb": self.bytes / 1e9, f"{name}/seconds": self.seconds}

    def record(self) -> dict[str, Any]:
        """Of all, for the manifest; empty before the first."""
        if not self.syncs:
            return {}
        totals = {"syncs": self.syncs, "gb": self.all_bytes / 1e9, "seconds": self.all_seconds}
        return {"way": self.way, **totals} if self.way else totals


@dataclass
class WeightDelivery:
    """Brings weights to vLLM's workers, from this process and the others of `group`.

    Attributes:
        by_memory: Whether the workers may be on the cards of the group's processes, in processes of
            their own.
        devices: Workers of vLLM; the group's first processes have their cards, in order.
        group: The processes that hold the model in shards; None is this one alone.
        part_bytes: Bytes of weights that are on their way at once.
    """

    by_memory: bool = False
    devices: int = 1
    group: dist.ProcessGroup | None = None
    part_bytes: int = PART_BYTES
    way: Way | None = field(default=None, init=False)

    def send(self, weights: Weights, dtype: torch.dtype, llm: DeliveryEngine) -> int:
        """Send all weights to an engine that has begun an update; the bytes sent.

        They have the engine's own type, so that no more is sent than is kept. The other processes
        of the group call `join` at the same time.
        """
        self._agree_on_way(llm)
        if self.way == "memory":
            return self._share(((name, value.to(dtype)) for name, value in weights), llm)
        return self._write(weights, dtype, llm)

    def join(self, weights: Weights) -> None:
        """Do another process's part of `send`: gather, and share what is on this process's card.

        Here the weights must have the engine's type already.
        """
        self._agree_on_way(None)
        if self.way == "memory":
            self._share(weights, None)
        else:
            for _ in weights:
                pass

    def _agree_on_way(self, llm: DeliveryEngine | None) -> None:
        """Choose the way, once: every worker must be able to open a buffer that is shared here."""
        if self.way is not None:
            return
        if not self.by_memory or _size(self.group) < self.devices:
            self.way = "files"
            return
        probe = torch.zeros(1, dtype=torch.uint8, device=_device())
        handles = self._gather(probe)
        opened = [False]
        if llm is not None:
            opened = llm.collective_rpc("opens_shared", None, (handles,))
        self.way = "memory" if self._from_first(all(opened)) else "files"

    def _share(self, weights: Weights, llm: DeliveryEngine | None) -> int:
        """Share the weights part by part; each part waits for the readers of the one before."""
        sent = 0
        for part in _packed_parts(weights, self.part_bytes):
            handles = self._gather(part.buffer)
            if llm is not None:
                update = {"names": part.names, "shapes": part.shapes, "handles": handles}
                update["dtype"] = str(part.buffer.dtype).removeprefix("torch.")
                llm.update_weights({"update_info": update})
            self._wait_for_readers()
            sent += part.buffer.nbytes
            device = part.buffer.device
            del part  # or its buffer would stay until the next one is there
            collect_shared_buffers(device)
        return sent

    def _write(self, weights: Weights, dtype: torch.dtype, llm: DeliveryEngine) -> int:
        """Write the weights to files part by part, each removed when it has been read."""
        sent = 0
        folder_in_memory = _folder_in_memory(2 * self.part_bytes)
        with tempfile.TemporaryDirectory(prefix="geosd-weights-", dir=folder_in_memory) as folder:
            parts = weight_delivery_parts(weights, dtype, self.part_bytes)
            for number, part in enumerate(parts):
                path = Path(folder) / f"{number}.safetensors"
                save_file(part, path)
                llm.update_weights({"update_info": {"path": str(path)}})
                path.unlink()
                sent += sum(tensor.nbytes for tensor in part.values())
        return sent

    def _gather(self, buffer: Tensor) -> dict[str, Handle]:
        """Handles of the group's buffers by device, those alone that a worker will open."""
        rank = 0 if self.group is None else self.group.rank()
        mine = (
            {buffer_device_name(buffer.device): share_buffer(buffer)} if rank < self.devices else {}
        )
        if self.group is None:
            return mine
        each: list[dict[str, Handle] | None] = [None] * self.group.size()
        dist.all_gather_object(each, mine, group=self.group)
        return {name: handle for handles in each for name, handle in handles.items()}

    def _from_first(self, value: bool) -> bool:
        """The first process's value, on every process of the group."""
        if self.group is None:
            return value
        box = [value]
        dist.broadcast_object_list(box, group=self.group, group_src=0, device=_device())
        return box[0]

    def _wait_for_readers(self) -> None:
        """Wait until the first process has had the part read: all may then give its memory up."""
        if self.group is not None:
            dist.barrier(self.group)


def _packed_parts(weights: Weights, nbytes: int) -> Iterator[_PackedPart]:
    """Weights of one type in buffers where they lie, in parts that end after so many bytes."""
    names: list[str] = []
    shapes: list[list[int]] = []
    values: list[Tensor] = []
    filled = 0
    for name, value in weights:
        names.append(name)
        shapes.append(list(value.shape))
        values.append(value.reshape(-1))
        filled += values[-1].nbytes
        if filled >= nbytes:
            yield _PackedPart(names, shapes, _moved_into_one(values))
            names, shapes, filled = [], [], 0
    if names:
        yield _PackedPart(names, shapes, _moved_into_one(values))


def _moved_into_one(values: list[Tensor]) -> Tensor:
    """The values one after the other in one tensor; the list is emptied, as they are copied."""
    buffer = torch.cat(values)
    values.clear()
    return buffer


def unpacked_weights(
    names: Iterable[str], shapes: Iterable[Iterable[int]], buffer: Tensor
) -> dict[str, Tensor]:
    """The weights of a part by name, as views of its buffer."""
    weights, at = {}, 0
    for name, shape in zip(names, shapes, strict=True):
        size = torch.Size(shape)
        weights[name] = buffer[at : at + size.numel()].view(size)
        at += size.numel()
    return weights


def weight_delivery_parts(
    weights: Weights, dtype: torch.dtype, nbytes: int
) -> Iterator[dict[str, Tensor]]:
    """Weights in the host's memory, by name, in parts that end after so many bytes.

    They have the engine's own type, so that no more is sent than is kept.
    """
    part: dict[str, Tensor] = {}
    for name, value in weights:
        # A copy even where type and device agree: a part must not change under its reader.
        part[name] = value.to(device="cpu", dtype=dtype, copy=True).contiguous()
        if sum(tensor.nbytes for tensor in part.values()) >= nbytes:
            yield part
            part = {}
    if part:
        yield part


def timed_delivery(
    delivery: WeightDelivery, delivered: Delivered, weights: Weights, dtype: torch.dtype, llm: Any
) -> None:
    """One update of an engine's weights, from its beginning to its end, counted in `delivered`."""
    began = time.monotonic()
    llm.start_weight_update()
    nbytes = delivery.send(weights, dtype, llm)
    llm.finish_weight_update(weight_version=str(delivered.syncs + 1))
    delivered.add(nbytes, time.monotonic() - began)
    delivered.way = delivery.way


def _size(group: dist.ProcessGroup | None) -> int:
    return 1 if group is None else group.size()


def _device() -> torch.device:
    """The device that this process's weights are on."""
    if torch.cuda.is_available():
        return torch.device("cuda", torch.cuda.current_device())
    return torch.device("cpu")


def _folder_in_memory(needed: int) -> str | None:
    """Where files cost no disk, if there is room; None is the system's folder for temporary ones.

    Containers are often given 64 MB of it.
    """
    shared = Path("/dev/shm")
    return str(shared) if shared.is_dir() and disk_usage(shared).free > needed else None
