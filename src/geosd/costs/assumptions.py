"""What a plan takes for granted: the GPU, what a program gets of it, and how long answers are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Gpu:
    """A GPU.

    Attributes:
        label: Its name in print.
        memory: Bytes, as nvidia-smi shows them; data sheets round to 141 and 80 GB.
        bandwidth: Bytes of its memory a second, by its data sheet.
        flops: bf16 operations a second on dense matrices, without sparsity, by its data sheet.
    """

    label: str
    memory: float
    bandwidth: float
    flops: float


MIB = 2**20
GPUS = {
    "h200": Gpu("H200 SXM", 143_771 * MIB, 4.8e12, 989e12),
    "h100": Gpu("H100 SXM", 81_559 * MIB, 3.35e12, 989e12),
}
"""The paper ran on H200 (Appendix Hardware)."""


@dataclass(frozen=True)
class Assumptions:
    """What is not known before a run; the paper gives none of it but the GPU.

    Attributes:
        gpu: The GPU.
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
        """Check that shares are shares and sizes are sizes."""
        for name in ("mfu", "bandwidth_share", "usable", "length"):
            if not 0 < getattr(self, name) <= 1:
                raise ValueError(
                    f"{name} is {getattr(self, name)}; it is a share, above 0 and at most 1.\n"
                    "Hint: 0.4 is 40 percent."
                )
        for name in ("prompt", "concurrent"):
            if getattr(self, name) < 1:
                raise ValueError(
                    f"{name} is {getattr(self, name)}; it is a count, 1 or more.\n"
                    "Hint: leave the option out to take the usual value."
                )

    @property
    def device(self) -> Gpu:
        """The GPU's data sheet."""
        return GPUS[self.gpu]

    @property
    def usable_bytes(self) -> float:
        """Bytes of a GPU that are planned with."""
        return self.usable * self.device.memory


DEFAULTS = Assumptions()
"""What is taken where nothing else is said."""
