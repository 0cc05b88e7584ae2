"""Inverses of damped covariances, in float64 where float32 is too coarse; an error is of all ranks.

Shapes: M = blocks, b = their size.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import torch
import torch.distributed as dist
from torch import Tensor


def damped_inverse(stack_Mbb: Tensor, shift: float) -> tuple[Tensor, int, int | None]:
    """Invert blocks plus `shift` times the identity, by Cholesky.

    Beside very large entries, float32 loses the shift itself; float64 adds it anew.

    Returns:
        The inverses; how many blocks were not positive definite in float32; and the first block
        that is not in float64 either, None where there is none.
    """
    factor, info = torch.linalg.cholesky_ex(_shifted(stack_Mbb, shift))
    failed = info.nonzero().flatten()
    if not len(failed):
        return torch.cholesky_inverse(factor), 0, None
    again, info = torch.linalg.cholesky_ex(_shifted(stack_Mbb[failed].double(), shift))
    if info.any():
        return factor, len(failed), int(failed[info.nonzero()[0, 0]])
    factor[failed] = torch.eye(factor.shape[-1], dtype=factor.dtype, device=factor.device)
    inverse = torch.cholesky_inverse(factor)
    inverse[failed] = torch.cholesky_inverse(again).to(inverse.dtype)
    return inverse, len(failed), None


def corrections(updates: Mapping[str, int], decay: float) -> list[float]:
    """What takes the start from zero out of averages of so many updates each."""
    return [1 / (1 - decay**count) if count else 1.0 for count in updates.values()]


def sum_on_all_ranks(
    count: Callable[[], int], group: dist.ProcessGroup | None, device: torch.device
) -> int:
    """The sum over the ranks of what they return; an error of one rank is one of all.

    Raises:
        torch.linalg.LinAlgError: `count` raised it on some rank.
    """
    if group is None:
        return count()
    total, error = 0, None
    try:
        total = count()
    except torch.linalg.LinAlgError as failure:
        error = failure
    both = torch.tensor([total, int(error is not None)], device=device)
    dist.all_reduce(both, group=group)
    total, errors = both.tolist()
    if errors:
        raise error or torch.linalg.LinAlgError(
            "a damped factor of another rank is not positive definite, in float64 too.\nHint: that"
            " rank's message names it."
        )
    return total


def _shifted(stack_Mbb: Tensor, shift: float) -> Tensor:
    stack_Mbb = stack_Mbb.clone()
    stack_Mbb.diagonal(dim1=-2, dim2=-1).add_(shift)
    return stack_Mbb
