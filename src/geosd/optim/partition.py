"""How a factor's dimensions are cut into blocks."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Run:
    """`count` consecutive blocks of equal `size`, the first of which begins at index `start`."""

    start: int
    count: int
    size: int

    @property
    def stop(self) -> int:
        """The index after the last one of the run."""
        return self.start + self.count * self.size

    def holds(self, other: Run) -> bool:
        """Whether the blocks of `other` are among these."""
        return self.size == other.size and self.start <= other.start and other.stop <= self.stop


def partition(dim: int, blocks: int) -> tuple[Run, ...]:
    """Cut `dim` indices into `blocks` consecutive blocks whose sizes differ by one at most.

    The paper's dimensions are all divisible by its g. Where they are not, the first `dim % blocks`
    blocks are one longer: sizes ceil(dim / blocks), then floor(dim / blocks). A factor with fewer
    dimensions than `blocks` has blocks of size 1 (its diagonal).

    Args:
        dim: Dimensions of the factor, d_in for A or d_out for G.
        blocks: The paper's g; 1 is the dense factor.

    Returns:
        One or two runs of blocks of equal size, in order, covering [0, dim).

    Raises:
        ValueError: `dim` or `blocks` is below 1.

    Source: the paper, "Kronecker factorization" (block-diagonal, g = 16 or 32).

    Example:
        >>> partition(10, 4)
        (Run(start=0, count=2, size=3), Run(start=6, count=2, size=2))
    """
    if dim < 1 or blocks < 1:
        raise ValueError(
            f"cannot cut {dim} dimensions into {blocks} blocks.\n"
            "Hint: both are at least 1; blocks=1 keeps the factor dense."
        )
    blocks = min(blocks, dim)
    floor, longer = divmod(dim, blocks)
    if not longer:
        return (Run(0, blocks, floor),)
    return (
        Run(0, longer, floor + 1),
        Run(longer * (floor + 1), blocks - longer, floor),
    )


def share(dim: int, rank: int, ranks: int) -> tuple[int, int]:
    """The indices [start, stop) of `dim` that a rank holds, cut as FSDP2 cuts the rows of a weight.

    Example:
        >>> [share(10, rank, 4) for rank in range(4)]
        [(0, 3), (3, 6), (6, 9), (9, 10)]
    """
    size = -(-dim // ranks)
    return min(rank * size, dim), min((rank + 1) * size, dim)


def overlap_of(run: Run, span: tuple[int, int]) -> tuple[int, Run]:
    """The blocks of a run that begin in [start, stop): how many come before them, and they.

    Example:
        >>> overlap_of(Run(start=0, count=4, size=3), (5, 10))
        (2, Run(start=6, count=2, size=3))
    """
    first, stop = (min(max(-(-(edge - run.start) // run.size), 0), run.count) for edge in span)
    return first, Run(run.start + first * run.size, stop - first, run.size)


def is_cut(dim: int, blocks: int, ranks: int) -> bool:
    """Whether some block of a factor lies on two ranks.

    Example:
        >>> is_cut(32, 4, 2), is_cut(34, 4, 2)
        (False, True)
    """
    edges = {share(dim, rank, ranks)[0] for rank in range(ranks)} - {dim}
    starts = {run.start + i * run.size for run in partition(dim, blocks) for i in range(run.count)}
    return not edges <= starts
