"""Assumptions of a plan on the GPU and the work on it."""

from dataclasses import dataclass
from typing import Literal, NamedTuple

MIB, GIB = 2**20, 2**30


class AssumedGpu(NamedTuple):
    """A GPU: bytes as nvidia-smi shows them, bytes a second, dense bf16 operations a second."""

    label: str
    memory: float
    bandwidth: float
    flops: float


GPUS = {
    "4090": AssumedGpu("RTX 4090", 24_564 * MIB, 1.008e12, 165.2e12),
    "a10": AssumedGpu("A10", 23_028 * MIB, 0.6e12, 125e12),
    "5090": AssumedGpu("RTX 5090", 32_607 * MIB, 1.792e12, 209.5e12),
    "a100-40": AssumedGpu("A100 SXM 40 GB", 40_960 * MIB, 1.555e12, 312e12),
    "l40s": AssumedGpu("L40S", 46_068 * MIB, 0.864e12, 362e12),
    "a6000": AssumedGpu("RTX A6000", 49_140 * MIB, 0.768e12, 154.8e12),
    "h100": AssumedGpu("H100 SXM", 81_559 * MIB, 3.35e12, 989e12),
    "a100": AssumedGpu("A100 SXM 80 GB", 81_920 * MIB, 2.039e12, 312e12),
    "h200": AssumedGpu("H200 SXM", 143_771 * MIB, 4.8e12, 989e12),
    "b200": AssumedGpu("B200 SXM", 183_359 * MIB, 8e12, 2250e12),
}
"""By their makers' data sheets; the paper ran on H200 (Appendix Hardware)."""
GpuName = Literal["4090", "a10", "5090", "a100-40", "l40s", "a6000", "h100", "a100", "h200", "b200"]


@dataclass(frozen=True)
class Assumptions:
    """Assumptions on GPU and workload; the paper gives none of it but the GPU.

    Attributes:
        gpu_gb: Memory of the GPU in GB as its maker counts them (of 2^30 bytes); default: the data
            sheet's.
        mfu: Share of the GPU's operations that passes over whole sequences get.
        bandwidth_share: Share of the GPU's bandwidth that decoding gets.
        usable: Share of the GPU's memory that is planned with; the rest is for the allocator.
        length: Mean length of a response, in caps; 1 is the longest there can be.
        prompt: Tokens of a question with its template.
        concurrent: Sequences that are decoded side by side at most, if the KV cache holds them.
    """

    gpu: GpuName = "h200"
    gpu_gb: float | None = None
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
        wrong += ["gpu_gb"] if self.gpu_gb is not None and self.gpu_gb < 1 else []
        if wrong:
            raise ValueError(
                f"{wrong[0]} is {getattr(self, wrong[0])}; a share is above 0 and at most 1, a"
                " count 1 or more.\nHint: 0.4 is 40 percent; leave the option out for its default."
            )

    @property
    def device(self) -> AssumedGpu:
        """The data sheet of the assumed GPU."""
        sheet = GPUS[self.gpu]
        if self.gpu_gb is None:
            return sheet
        label = f"{sheet.label} with {self.gpu_gb:g} GB"
        return sheet._replace(label=label, memory=self.gpu_gb * GIB)

    @property
    def flops(self) -> float:
        """Operations a second that passes over whole sequences get."""
        return self.mfu * self.device.flops

    @property
    def usable_bytes(self) -> float:
        """Bytes of the assumed GPU that are planned with."""
        return self.usable * self.device.memory


DEFAULTS = Assumptions()
