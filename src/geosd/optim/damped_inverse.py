"""Inverses of damped covariances, exact enough for the damping; an error is of all ranks.

Shapes: M = blocks, b = their size.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager

import torch
import torch.distributed as dist
from torch import Tensor

from geosd.optim.partition import BlockRange

Inverse = Iterable[tuple[BlockRange, Tensor]]
"""Block ranges of a factor, each with its inverted blocks [c, b, b]."""


def inverse_by_cholesky(stack_Mbb: Tensor, shift: float) -> tuple[Tensor, Tensor]:
    """Invert symmetric blocks plus `shift` times the identity, by Cholesky in their own dtype.

    Returns:
        The inverses, and for which blocks [M] there is none: those are without meaning, and
        `damped_inverse` has them. The device is not waited for.
    """
    factor, info_M = torch.linalg.cholesky_ex(_shifted(stack_Mbb, shift))
    failed_M = info_M != 0
    # A factor that broke off may have a zero there, which LAPACK refuses for the whole stack.
    factor.diagonal(dim1=-2, dim2=-1).masked_fill_(failed_M[:, None], 1.0)
    return torch.cholesky_inverse(factor), failed_M


def any_inverse_failed(flags: Sequence[Tensor]) -> bool:
    """Whether one of several flags [] is true; their devices are waited for once."""
    if not flags:  # a rank may own no block
        return False
    device = flags[0].device
    return bool(torch.stack([flag.to(device) for flag in flags]).any())


def damped_inverse(
    stack_Mbb: Tensor, shift: float, stored: torch.dtype
) -> tuple[Tensor, int, int | None]:
    """Invert symmetric blocks plus `shift` times the identity, by Cholesky.

    With very large entries, float32 loses the shift itself; float64 adds it anew. Stored averages
    are covariances but for their rounding, which can be larger than the shift: in bfloat16 2^-9 of
    an entry of 1,600 is 3, and the shift .03. Then negative eigenvalues are rounding. Setting them
    to 0 gives the nearest covariance, which is never farther from the exact one.

    `stored` is the dtype that the averages are rounded to.

    Returns:
        The inverses; how many blocks were not positive definite in float32; and the first block
        whose eigenvalues are more negative than rounding makes them, None where there is none.
    """
    factor, info = torch.linalg.cholesky_ex(_shifted(stack_Mbb, shift))
    failed = info.nonzero().flatten()
    if not len(failed):
        return torch.cholesky_inverse(factor), 0, None
    exact = stack_Mbb[failed].double()
    again, info = torch.linalg.cholesky_ex(_shifted(exact, shift))
    rounded = info.nonzero().flatten()
    in_float64 = torch.cholesky_inverse(again)
    if len(rounded):
        in_float64[rounded], wrong = _inverse_of_nearest(exact[rounded], shift, stored)
        if wrong.any():
            return factor, len(failed), int(failed[rounded[wrong.nonzero()[0, 0]]])
    factor[failed] = torch.eye(factor.shape[-1], dtype=factor.dtype, device=factor.device)
    inverse = torch.cholesky_inverse(factor)
    inverse[failed] = in_float64.to(inverse.dtype)
    return inverse, len(failed), None


def _inverse_of_nearest(
    stack_Mbb: Tensor, shift: float, stored: torch.dtype
) -> tuple[Tensor, Tensor]:
    """Damped inverses of the nearest covariances [M, b, b], and which blocks are not near one [M].

    Independent relative errors eps of each entry move eigenvalues by some sqrt(b) eps max|entry|.
    An average rounds once a step, which adds up to three times that at a decay of .95.
    """
    finite_M = stack_Mbb.isfinite().all(-1).all(-1)
    stack_Mbb = torch.where(finite_M[:, None, None], stack_Mbb, 0.0)
    values_Mb, vectors_Mbb = torch.linalg.eigh(stack_Mbb)
    scale_M = stack_Mbb.abs().amax((-2, -1))
    bound_M = 8 * stack_Mbb.shape[-1] ** 0.5 * torch.finfo(stored).eps * scale_M
    inverse = vectors_Mbb / (values_Mb.clamp_min(0) + shift)[:, None] @ vectors_Mbb.mT
    return inverse, (values_Mb[:, 0] < -bound_M) | ~finite_M


def solve_left(inverse: Inverse, grad_OI: Tensor) -> Tensor:
    """Multiply a gradient dW by (G + sqrt(gamma) I)^-1 from the left, over blocks of its rows."""
    parts = []
    with tf32_inverse_products(grad_OI.device):
        for block_range, blocks_cbb in inverse:
            parts.append(torch.bmm(blocks_cbb, block_range.cut(grad_OI, 0)).flatten(0, 1))
    return torch.cat(parts)


def solve_right(inverse: Inverse, grad_OI: Tensor) -> Tensor:
    """Multiply a gradient dW by (A + sqrt(gamma) I)^-1 from the right, over column blocks."""
    parts = []
    with tf32_inverse_products(grad_OI.device):
        for block_range, blocks_cbb in inverse:
            columns_Ocb = block_range.cut(grad_OI, 1)
            solved_cOb = torch.bmm(columns_Ocb.transpose(0, 1), blocks_cbb)
            parts.append(solved_cOb.transpose(0, 1).flatten(1))
    return torch.cat(parts, dim=1)


@contextmanager
def tf32_inverse_products(device: torch.device) -> Iterator[None]:
    """Context in which a GPU multiplies float32 in TF32: operands of 11 bits, sums of 24.

    The products of gradients and inverses alone are in it. Covariances and factorisations stay in
    float32: a damped block is inverted, and an error of it would be larger by its condition. On a
    CPU nothing changes.
    """
    if device.type != "cuda":
        yield
        return
    before = torch.backends.cuda.matmul.allow_tf32
    torch.backends.cuda.matmul.allow_tf32 = True
    try:
        yield
    finally:
        torch.backends.cuda.matmul.allow_tf32 = before


def inverse_sum_on_ranks(
    count: Callable[[], int], group: dist.ProcessGroup | None, device: torch.device
) -> int:
    """The sum over the ranks of what they return; a LinAlgError of one rank is one of all."""
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
            "a factor of another rank is no covariance.\nHint: that rank's message names it."
        )
    return total


def _shifted(stack_Mbb: Tensor, shift: float) -> Tensor:
    stack_Mbb = stack_Mbb.clone()
    stack_Mbb.diagonal(dim1=-2, dim2=-1).add_(shift)
    return stack_Mbb
