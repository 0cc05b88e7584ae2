"""How a factor's dimensions are cut into blocks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # sizes are counted without torch
    from torch import Tensor


@dataclass(frozen=True)
class BlockRange:
    """`count` consecutive blocks of equal `size`, the first of which begins at index `start`."""

    start: int
    count: int
    size: int

    @property
    def stop(self) -> int:
        """The index after the last block."""
        return self.start + self.count * self.size

    def cut(self, tensor: Tensor, dim: int) -> Tensor:
        """The blocks' part of a tensor, its dimension `dim` as two: [count, size]."""
        part = tensor.narrow(dim, self.start, self.count * self.size)
        return part.unflatten(dim, (self.count, self.size))

    def holds(self, other: BlockRange) -> bool:
        """Whether the blocks of `other` are among this range's."""
        return self.size == other.size and self.start <= other.start and other.stop <= self.stop


def partition(dim: int, blocks: int) -> tuple[BlockRange, ...]:
    """Cut `dim` indices into `blocks` consecutive blocks whose sizes differ by one at most.

    `dim` is d_in of a factor A or d_out of G, `blocks` the paper's g; 1 is the dense factor. The
    paper's dimensions are all divisible by its g. Where they are not, the first `dim % blocks`
    blocks are one longer: there are one or two ranges, in order. A factor with fewer dimensions
    than `blocks` has blocks of size 1 (its diagonal).

    Raises:
        ValueError: `dim` or `blocks` is below 1.

    Source: the paper, "Kronecker factorization" (app:exp-kfac): block-diagonal, g = 16 or 32.

    Example:
        >>> partition(10, 4)
        (BlockRange(start=0, count=2, size=3), BlockRange(start=6, count=2, size=2))
    """
    if dim < 1 or blocks < 1:
        raise ValueError(
            f"cannot cut {dim} dimensions into {blocks} blocks.\n"
            "Hint: both are at least 1; blocks=1 keeps the factor dense."
        )
    blocks = min(blocks, dim)
    floor, longer = divmod(dim, blocks)
    if not longer:
        return (BlockRange(0, blocks, floor),)
    return (
        BlockRange(0, longer, floor + 1),
        BlockRange(longer * (floor + 1), blocks - longer, floor),
    )


def rank_partition(dim: int, rank: int, ranks: int) -> tuple[int, int]:
    """The indices [start, stop) of `dim` that a rank holds, cut as FSDP2 cuts the rows of a weight.

    Example:
        >>> [rank_partition(10, rank, 4) for rank in range(4)]
        [(0, 3), (3, 6), (6, 9), (9, 10)]
    """
    size = -(-dim // ranks)
    return min(rank * size, dim), min((rank + 1) * size, dim)


def blocks_starting_in(blocks: BlockRange, span: tuple[int, int]) -> tuple[int, BlockRange]:
    """Those of some blocks that begin in [start, stop): how many come before them, and they.

    Example:
        >>> blocks_starting_in(BlockRange(start=0, count=4, size=3), (5, 10))
        (2, BlockRange(start=6, count=2, size=3))
    """
    start, count, size = blocks.start, blocks.count, blocks.size
    first, stop = (min(max(-(-(edge - start) // size), 0), count) for edge in span)
    return first, BlockRange(start + first * size, stop - first, size)


def splits_a_block(dim: int, blocks: int, ranks: int) -> bool:
    """Whether the partition of a factor into blocks puts some block on two ranks.

    Example:
        >>> splits_a_block(32, 4, 2), splits_a_block(34, 4, 2)
        (False, True)
    """
    edges = {rank_partition(dim, rank, ranks)[0] for rank in range(ranks)} - {dim}
    ranges = partition(dim, blocks)
    starts = {start for each in ranges for start in range(each.start, each.stop, each.size)}
    return not edges <= starts
