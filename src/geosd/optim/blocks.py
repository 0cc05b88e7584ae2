"""Block-diagonal covariances of many factors: accumulate, average, invert.

Blocks of equal size lie in one tensor, whatever factor they belong to, so that a step costs a few
batched calls and no loop over blocks. A 64-wide model of three layers has some five hundred blocks,
and its whole update is a few milliseconds for this reason alone.

Shapes: M = blocks of one stack, b = their size, N = positions, D = dimensions of a factor.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import torch
from torch import Tensor

from geosd.optim.partition import Run, partition

# Elements that are converted or factorised in one go: bounds the transient memory of large models.
CHUNK = 2**26


class BlockFactors:
    """The covariances of named factors, each block-diagonal, with their damped inverses.

    Args:
        dims: Factor name -> dimensions D.
        blocks: Blocks per factor (the paper's g); see `partition` for uneven dimensions.
        storage: dtype of the averages and the inverses (float32, bfloat16; float64 for tests).
        devices: Factor name -> device of its blocks.

    Sums of the current step and every factorisation are float32 (float64 if `storage` is).
    """

    def __init__(
        self,
        dims: Mapping[str, int],
        blocks: int,
        storage: torch.dtype,
        devices: Mapping[str, torch.device],
    ) -> None:
        """Lay the blocks out in stacks of equal size, all zero."""
        self.dims = dict(dims)
        self.blocks = blocks
        self.compute = torch.float64 if storage == torch.float64 else torch.float32
        self.counts = dict.fromkeys(dims, 0)  # positions in the sums of this step
        self.updates = dict.fromkeys(dims, 0)  # steps in the average, for the bias correction
        owners: dict[tuple[str, int], list[int]] = {}
        self._places: dict[str, list[tuple[Run, tuple[str, int], int]]] = {}
        for number, (name, dim) in enumerate(self.dims.items()):
            self._places[name] = []
            for run in partition(dim, blocks):
                stack = owners.setdefault((str(devices[name]), run.size), [])
                self._places[name].append((run, (str(devices[name]), run.size), len(stack)))
                stack.extend([number] * run.count)
        self._sum, self._average, self._inverse, self._owner = {}, {}, {}, {}
        for key, owner in owners.items():
            device, size = key
            shape = (len(owner), size, size)
            self._sum[key] = torch.zeros(shape, dtype=self.compute, device=device)
            self._average[key] = torch.zeros(shape, dtype=storage, device=device)
            self._inverse[key] = torch.zeros(shape, dtype=storage, device=device)
            self._owner[key] = torch.tensor(owner, device=device)

    def _views(self, store: dict[Any, Tensor], name: str) -> Iterator[tuple[Run, Tensor]]:
        for run, key, first in self._places[name]:
            yield run, store[key][first : first + run.count]

    def add(self, name: str, rows_ND: Tensor) -> None:
        """Add sum over N of x x^T, block by block, to this step's sum of factor `name`."""
        rows_ND = rows_ND.to(self.compute)
        for run, sum_Mbb in self._views(self._sum, name):
            x = rows_ND[:, run.start : run.stop].unflatten(1, (run.count, run.size))
            sum_Mbb.baddbmm_(x.permute(1, 2, 0), x.transpose(0, 1))
        self.counts[name] += rows_ND.shape[0]

    @torch.no_grad()
    def update(self, decay: float) -> None:
        """Fold this step's mean over its positions into the averages, and begin a new sum.

        E_t = decay E_(t-1) + (1 - decay) S_t / N_t, from E_0 = 0; factors without positions in this
        step keep their average.

        Raises:
            FloatingPointError: A sum is not finite; the averages are left as they were.
        """
        self._check_finite()
        seen = {name for name, count in self.counts.items() if count}
        keep = [decay if name in seen else 1.0 for name in self.dims]
        gain = [(1 - decay) / max(self.counts[name], 1) for name in self.dims]
        for key, average in self._average.items():
            keep_M, gain_M = self._per_block(key, keep), self._per_block(key, gain)
            for part in _chunks(average):
                new = average[part].to(self.compute) * keep_M[part]
                average[part] = new.addcmul_(self._sum[key][part], gain_M[part])
            self._sum[key].zero_()
        for name in seen:
            self.updates[name] += 1
            self.counts[name] = 0

    @torch.no_grad()
    def invert(self, decay: float, shift: float) -> None:
        """Set every inverse to (E_t / (1 - decay^t) + shift I)^-1, by Cholesky.

        Raises:
            torch.linalg.LinAlgError: A block is not positive definite even in float64.
        """
        scale = self._corrections(decay)
        for key, average in self._average.items():
            scale_M = self._per_block(key, scale)
            for part in _chunks(average):
                corrected = average[part].to(self.compute) * scale_M[part]
                self._inverse[key][part] = self._damped_inverse(corrected, shift, key, part.start)

    def _damped_inverse(
        self, corrected_Mbb: Tensor, shift: float, key: tuple[str, int], first: int
    ) -> Tensor:
        factor, info = torch.linalg.cholesky_ex(_shifted(corrected_Mbb, shift))
        failed = info.nonzero().flatten()
        if not len(failed):
            return torch.cholesky_inverse(factor)
        # Beside very large entries, float32 loses the shift itself; float64 adds it anew.
        again, info = torch.linalg.cholesky_ex(_shifted(corrected_Mbb[failed].double(), shift))
        if info.any():
            owner = self._owner[key][first + failed[info.nonzero()[0, 0]]]
            raise torch.linalg.LinAlgError(
                f"the damped factor {list(self.dims)[owner]} has a block of size {key[1]} that is"
                " not positive definite, in float64 too.\nHint: raise the damping, or look for"
                " very large activations or gradients in this layer."
            )
        factor[failed] = torch.eye(key[1], dtype=factor.dtype, device=factor.device)
        inverse = torch.cholesky_inverse(factor)
        inverse[failed] = torch.cholesky_inverse(again).to(inverse.dtype)
        return inverse

    def averages(self, decay: float) -> Iterator[tuple[Tensor, Tensor]]:
        """The bias-corrected averages: (factor number of each block [M], blocks [M, b, b])."""
        scale = self._corrections(decay)
        for key, average in self._average.items():
            scale_M = self._per_block(key, scale)
            for part in _chunks(average):
                blocks = average[part].to(self.compute) * scale_M[part]
                yield self._owner[key][part], blocks

    def _corrections(self, decay: float) -> list[float]:
        return [1 / (1 - decay**count) if count else 1.0 for count in self.updates.values()]

    def inverse(self, name: str) -> Iterator[tuple[Run, Tensor]]:
        """The damped inverse of a factor: its runs, each with its blocks [count, b, b]."""
        for run, blocks in self._views(self._inverse, name):
            yield run, blocks.to(self.compute)

    def sums(self) -> list[Tensor]:
        """This step's sums, one tensor [M, b, b] per stack; what data-parallel ranks add up."""
        return list(self._sum.values())

    def state_dict(self) -> dict[str, Any]:
        """Everything that later steps depend on: tensors (not copied), names and plain numbers."""
        pending = any(self.counts.values())
        return {
            "dims": dict(self.dims),
            "blocks": self.blocks,
            "counts": dict(self.counts),
            "updates": dict(self.updates),
            "sums": list(self._sum.values()) if pending else None,
            "averages": list(self._average.values()),
            "inverses": list(self._inverse.values()),
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from `state`, bit for bit.

        Raises:
            ValueError: The state is of other factors, another number of blocks or another dtype.
        """
        theirs, ours = (state["dims"], state["blocks"]), (self.dims, self.blocks)
        if theirs != ours:
            odd = sorted(set(theirs[0].items()) ^ set(ours[0].items()))
            raise ValueError(
                f"the K-FAC state was saved with blocks={theirs[1]}, this one has blocks={ours[1]};"
                f" factors that differ: {odd[:4] or 'none'}.\nHint: resume with the model and the"
                " settings that wrote the state, or begin anew without it."
            )
        for store, key in ((self._average, "averages"), (self._inverse, "inverses")):
            for mine, other in zip(store.values(), state[key], strict=True):
                if mine.dtype != other.dtype:
                    raise ValueError(
                        f"the K-FAC state is stored as {other.dtype}, this one as {mine.dtype}.\n"
                        "Hint: set storage to what the run began with."
                    )
                mine.copy_(other)
        pending = state["sums"] or [torch.zeros(())] * len(self._sum)
        for mine, other in zip(self._sum.values(), pending, strict=True):
            mine.copy_(other)
        self.counts, self.updates = dict(state["counts"]), dict(state["updates"])

    def _per_block(self, key: tuple[str, int], values: list[float]) -> Tensor:
        owner = self._owner[key]
        per_factor = torch.tensor(values, dtype=self.compute, device=owner.device)
        return per_factor.index_select(0, owner)[:, None, None]

    def _check_finite(self) -> None:
        if all(bool(total.sum().isfinite()) for total in self._sum.values()):
            return
        for name in self.dims:
            if not all(bool(part.isfinite().all()) for _, part in self._views(self._sum, name)):
                raise FloatingPointError(
                    f"the covariance of {name} is not finite in this step; the averages were left"
                    " as they were.\nHint: look for an infinite loss or activation; to go on"
                    " without this step, call discard() and zero the gradients."
                )

    def discard(self) -> None:
        """Forget the sums of the current step."""
        for total in self._sum.values():
            total.zero_()
        self.counts = dict.fromkeys(self.dims, 0)


def _shifted(stack_Mbb: Tensor, shift: float) -> Tensor:
    stack_Mbb = stack_Mbb.clone()
    stack_Mbb.diagonal(dim1=-2, dim2=-1).add_(shift)
    return stack_Mbb


def _chunks(stack_Mbb: Tensor) -> Iterator[slice]:
    step = max(1, CHUNK // stack_Mbb[0].numel())
    for first in range(0, stack_Mbb.shape[0], step):
        yield slice(first, min(first + step, stack_Mbb.shape[0]))
