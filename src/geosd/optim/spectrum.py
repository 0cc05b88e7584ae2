"""The size of the curvature, to compare with its damping.

Shapes: M = blocks of a stack, b = their size, S = sides of a layer: inputs and outputs.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
import torch.distributed as dist
from torch import Tensor

from geosd.optim.blocks import BlockFactors

# Power iterations. A full eigendecomposition of every block takes minutes at 8B, this milliseconds.
ITERATIONS = 24
NORMALISE_EVERY = 6


def _largest_eigenvalues(stack_Mbb: Tensor) -> Tensor:
    """The largest eigenvalue of each positive semidefinite block, [M].

    Power iteration from the column of the largest diagonal entry. The Rayleigh quotient approaches
    from below: exact for well separated eigenvalues, a few per cent short for equal ones.
    """
    diagonal_Mb = stack_Mbb.diagonal(dim1=-2, dim2=-1)
    start = diagonal_Mb.argmax(-1)
    vector_Mb1 = stack_Mbb[torch.arange(len(start), device=start.device), :, start, None]
    # Divided by the trace, which no eigenvalue exceeds: no vector overflows between two norms.
    tiny = torch.finfo(stack_Mbb.dtype).tiny
    scale_M11 = diagonal_Mb.sum(-1).clamp(min=tiny).reciprocal()[:, None, None]
    for step in range(ITERATIONS - 1):
        if step % NORMALISE_EVERY == 0:
            vector_Mb1 = torch.nn.functional.normalize(vector_Mb1, dim=1)
        vector_Mb1 = torch.bmm(stack_Mbb, vector_Mb1).mul_(scale_M11)
    vector_Mb1 = torch.nn.functional.normalize(vector_Mb1, dim=1, eps=tiny)
    return (vector_Mb1 * torch.bmm(stack_Mbb, vector_Mb1)).sum((1, 2))


@torch.no_grad()
def spectrum(factors: BlockFactors, decay: float) -> dict[str, float]:
    """Mean and largest eigenvalue of K-FAC's bias-corrected factors, over all blocks and layers."""
    is_output = torch.tensor([name.endswith(".G") for name in factors.dims])
    input_side, output_side = _Side(), _Side()
    for owner_M, average_Mbb in factors.averages(decay):
        of_output_M = is_output.to(owner_M.device)[owner_M]
        trace_M = average_Mbb.diagonal(dim1=-2, dim2=-1).sum(-1)
        largest_M = _largest_eigenvalues(average_Mbb)
        size = average_Mbb.shape[-1]
        input_side.add(trace_M[~of_output_M], largest_M[~of_output_M], size)
        output_side.add(trace_M[of_output_M], largest_M[of_output_M], size)
    if factors.group is not None:
        device = factors.sums()[0].device
        _reduce((input_side, output_side), device, factors.group)
    return {
        "a_mean": input_side.trace / input_side.eigenvalues,
        "a_max": input_side.largest,
        "g_mean": output_side.trace / output_side.eigenvalues,
        "g_max": output_side.largest,
    }


@dataclass
class _Side:
    """The eigenvalues of all layers' factors of one kind: of their inputs, or of their outputs."""

    trace: float = 0.0
    eigenvalues: float = 0
    largest: float = 0.0

    def add(self, trace_M: Tensor, largest_M: Tensor, size: int) -> None:
        """Count M blocks of `size` eigenvalues each."""
        self.trace += float(trace_M.sum())
        self.eigenvalues += len(trace_M) * size
        self.largest = max([self.largest, *largest_M.tolist()])


def _reduce(sides: Sequence[_Side], device: torch.device, group: dist.ProcessGroup) -> None:
    """Give every rank of a group the sides over the blocks of all its ranks."""
    traces = [side.trace for side in sides]
    counts = [side.eigenvalues for side in sides]
    tops = [side.largest for side in sides]
    sum_2S = torch.tensor([traces, counts], dtype=torch.float64, device=device)
    max_S = torch.tensor(tops, dtype=torch.float64, device=device)
    dist.all_reduce(sum_2S, group=group)
    dist.all_reduce(max_S, op=dist.ReduceOp.MAX, group=group)
    totals = zip(*sum_2S.tolist(), max_S.tolist(), strict=True)
    for side, (trace, eigenvalues, largest) in zip(sides, totals, strict=True):
        side.trace, side.eigenvalues, side.largest = trace, eigenvalues, largest
