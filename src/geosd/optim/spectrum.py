"""The size of the curvature beside its damping.

Shapes: M = blocks of a stack, b = their size.
"""

import torch
import torch.distributed as dist
from torch import Tensor

from geosd.optim.blocks import BlockFactors

# Power iterations. A full eigendecomposition of every block takes minutes at 8B, this milliseconds.
ITERATIONS = 24
NORMALISE_EVERY = 6


def largest_eigenvalues(stack_Mbb: Tensor) -> Tensor:
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
    device = factors.sums()[0].device
    is_output = torch.tensor([name.endswith(".G") for name in factors.dims])
    trace, dims, largest = [0.0, 0.0], [0, 0], [0.0, 0.0]
    for owner_M, average_Mbb in factors.averages(decay):
        side_M = is_output.to(owner_M.device)[owner_M]
        trace_M = average_Mbb.diagonal(dim1=-2, dim2=-1).sum(-1)
        top_M = largest_eigenvalues(average_Mbb)
        for side in (0, 1):
            on_side = side_M == bool(side)
            trace[side] += float(trace_M[on_side].sum())
            dims[side] += int(on_side.sum()) * average_Mbb.shape[-1]
            largest[side] = max([largest[side], *top_M[on_side].tolist()])
    if factors.group is not None:
        sums = torch.tensor([*trace, *dims], dtype=torch.float64, device=device)
        tops = torch.tensor(largest, dtype=torch.float64, device=device)
        dist.all_reduce(sums, group=factors.group)
        dist.all_reduce(tops, op=dist.ReduceOp.MAX, group=factors.group)
        trace, dims, largest = sums[:2].tolist(), sums[2:].tolist(), tops.tolist()
    return {
        "a_mean": trace[0] / dims[0],
        "a_max": largest[0],
        "g_mean": trace[1] / dims[1],
        "g_max": largest[1],
    }
