"""Assumptions of a plan on the GPU and the work on it."""

from dataclasses import dataclass
from typing import Literal, NamedTuple

MIB = 2**20


class Gpu(NamedTuple):
    """A GPU: bytes as nvidia-smi shows them, bytes a second, dense bf16 operations a second."""

    label: str
    memory: float
    bandwidth: float
    flops: float


GPUS = {
    "h200": Gpu("H200 SXM", 143_771 * MIB, 4.8e12, 989e12),
    "h100": Gpu("H100 SXM", 81_559 * MIB, 3.35e12, 989e12),
}
"""The paper ran on H200 (Appendix Hardware)."""


@dataclass(frozen=True)
class Assumptions:
    """Assumptions on GPU and workload; the paper gives none of it but the GPU.

    Attributes:
        mfu: Share of the GPU's operations that passes over whole sequences get.
        bandwidth_share: Share of the GPU's bandwidth that decoding gets.
        usable: Share of the GPU's memory that is planned with; the rest is for the allocator.
        length: Mean length of a response, in caps; 1 is the longest there can be.
        prompt: Tokens of a question with its template.
        concurrent: Sequences that are decoded side by side at most, if the KV cache holds them.
    """

    gpu: Literal["h200", "h100"] = "h200"
    mfu: float = 0.4
    bandwidth_share: float = 0.7
    usable: float = 0.9
    length: float = 1.0
    prompt: int = 256
    concurrent: int = 256

    def __post_init__(self) -> None:
        """Check that shares are shares and counts are counts."""
        shares = ("mfu", "bandwidth_share", "usable", "length")
        counts = ("prompt", "concurrent")
        wrong = [name for name in shares if not 0 < getattr(self, name) <= 1]
        wrong += [name for name in counts if getattr(self, name) < 1]
        if wrong:
            raise ValueError(
                f"{wrong[0]} is {getattr(self, wrong[0])}; a share is above 0 and at most 1, a"
                " count 1 or more.\nHint: 0.4 is 40 percent; leave the option out for its default."
            )

    @property
    def device(self) -> Gpu:
        """The data sheet of the assumed GPU."""
        return GPUS[self.gpu]

    @property
    def flops(self) -> float:
        """Operations a second that passes over whole sequences get."""
        return self.mfu * self.device.flops

    @property
    def usable_bytes(self) -> float:
        """Bytes of the assumed GPU that are planned with."""
        return self.usable * self.device.memory


DEFAULTS = Assumptions()
