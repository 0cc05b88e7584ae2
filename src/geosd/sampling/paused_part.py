"""A part of samples that is left in the middle: its responses so far, and the model's cache.

A part is what a sampler computes together. Its responses are the same bytes only if each token is
computed from the same cache, in the same rows, as without the interruption: so the cache is kept,
as it lies in memory. What would take longer to write than a scheduler or a person waits is not
kept, and the part begins anew.
"""

import logging
import time
import zlib
from collections.abc import Mapping
from json import JSONDecodeError, dumps, loads
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from geosd.files import write_text

SAVING_S = 20.0
"""How long the writing of a part may take."""
PIECE = 1 << 26
"""Bytes that are written at once."""

logger = logging.getLogger(__name__)


def never_paused() -> bool:
    """The check of a sampler that nobody asks to stop."""
    return False


class PartLeftError(Exception):
    """A sampler was asked to stop, and left a part in the middle."""


class PausedPart:
    """Where the part that is under way is kept when a job is asked to stop.

    Two files: the tensors, one behind the other, and a head that says what they are. The head is
    written last, so that a head is of whole tensors; it has their checksum (CRC-32).

    Args:
        folder: Of the samples that are kept.
        identity: Digests of what makes the job what it is; a part of another job is not continued.
    """

    def __init__(self, folder: Path, identity: Any) -> None:
        self.head, self.data = folder / "part.json", folder / "part.bin"
        self.identity = identity

    def save(self, key: Any, values: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> bool:
        """Keep plain values and tensors of the part that `key` names; whether time sufficed."""
        self.clear()
        self.data.parent.mkdir(parents=True, exist_ok=True)
        deadline, checksum = time.monotonic() + SAVING_S, 0
        try:
            with self.data.open("wb") as file:
                for tensor in tensors.values():
                    for piece in _bytes_of(tensor).split(PIECE):
                        content = memoryview(piece.numpy())
                        checksum = zlib.crc32(content, checksum)
                        file.write(content)
                        file.flush()
                        if time.monotonic() > deadline:
                            raise TimeoutError(f"writing took longer than {SAVING_S:g} s")
            shapes = {
                name: [str(tensor.dtype).removeprefix("torch."), list(tensor.shape)]
                for name, tensor in tensors.items()
            }
            head = {"identity": self.identity, "key": key, "threads": torch.get_num_threads()}
            head |= {"values": dict(values), "tensors": shapes, "checksum": checksum}
            write_text(self.head, dumps(head))
        except OSError as error:
            logger.warning(f"The part that is under way is not kept, and will begin anew: {error}")
            self.clear()
            return False
        return True

    def load(self, key: Any) -> tuple[dict[str, Any], dict[str, Tensor]] | None:
        """The values and tensors of the part that `key` names; None where they are not kept.

        The process then computes in as many threads as the part began with: their number decides
        the last bits of sums.
        """
        try:
            head = loads(self.head.read_text(encoding="utf-8"))
            if head["identity"] != self.identity or head["key"] != loads(dumps(key)):
                return None
            tensors, checksum = {}, 0
            with self.data.open("rb") as file:
                for name, (dtype, shape) in head["tensors"].items():
                    tensors[name] = torch.empty(shape, dtype=getattr(torch, dtype))
                    content = memoryview(_bytes_of(tensors[name]).numpy())
                    if file.readinto(content) != len(content):
                        raise ValueError("it is cut short")
                    checksum = zlib.crc32(content, checksum)
            if checksum != head["checksum"]:
                raise ValueError("it has another checksum than its head says")
        except FileNotFoundError:
            return None
        except (OSError, ValueError, KeyError, TypeError, JSONDecodeError) as error:
            logger.warning(f"{self.data} is not what was written: {error}. The part begins anew.")
            return None
        torch.set_num_threads(head["threads"])
        return head["values"], tensors

    def clear(self) -> None:
        """Forget the part: its samples are kept, or it begins anew."""
        for path in (self.head, self.data):
            path.unlink(missing_ok=True)


def _bytes_of(tensor: Tensor) -> Tensor:
    """The memory of a contiguous tensor on the CPU, as bytes."""
    return tensor.reshape(-1).view(torch.uint8)
