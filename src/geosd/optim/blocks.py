"""Block-diagonal covariances of many factors: accumulate, average, invert.

Blocks of equal size lie in one tensor, whatever factor they belong to, so that a step costs a few
batched calls and no loop over blocks (a 64-wide model of three layers has some five hundred).

Where several ranks train one model, every rank sums over its own positions for all blocks, and
keeps averages and inverses of the blocks that it owns: those that begin in its share of the
factor's dimensions, cut as FSDP2 cuts the rows of a weight. Alone, a process owns all.

Shapes: M = blocks of one stack, m = those of them that this rank owns, b = their size,
N = positions, D = dimensions of a factor.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from geosd.optim.damped_inverse import (
    any_inverse_failed,
    damped_inverse,
    inverse_by_cholesky,
    inverse_sum_on_ranks,
)
from geosd.optim.partition import BlockRange, blocks_starting_in, partition, rank_partition

# Elements that are converted or factorised in one go: bounds the transient memory of large models.
CHUNK = 2**26

Key = tuple[str, int]
"""Device and block size of a stack."""
Place = tuple[BlockRange, Key, int]
"""A block range, the stack that it lies in, and where in the stack it begins."""


class BlockFactors:
    """The covariances of named factors, each block-diagonal, with their damped inverses.

    Args:
        dims: Factor name -> dimensions D.
        blocks: Blocks per factor (the paper's g); see `partition` for uneven dimensions.
        storage: dtype of averages and inverses; sums and factorisations are float32 (float64 if it
            is).
        devices: Factor name -> device of its blocks.
        group: Ranks among which the blocks are shared out; None keeps them all here.
    """

    def __init__(
        self,
        dims: Mapping[str, int],
        blocks: int,
        storage: torch.dtype,
        devices: Mapping[str, torch.device],
        group: dist.ProcessGroup | None = None,
    ) -> None:
        self.dims = dict(dims)
        self.group = group
        self.blocks = blocks
        self.compute = torch.float64 if storage == torch.float64 else torch.float32
        self.counts = dict.fromkeys(dims, 0)  # positions in the sums of this step
        self.updates = dict.fromkeys(dims, 0)  # steps in the average, for the bias correction
        # Where a factor's blocks lie: in the stacks of all blocks, and in those of the owned ones.
        self._places: dict[str, list[Place]] = {name: [] for name in dims}
        self._owned_places: dict[str, list[Place]] = {name: [] for name in dims}
        factor_of: dict[Key, list[int]] = {}
        owned: dict[Key, list[int]] = {}
        for number, (name, dim) in enumerate(self.dims.items()):
            span = self.span(dim)
            for block_range in partition(dim, blocks):
                key = (str(devices[name]), block_range.size)
                stack = factor_of.setdefault(key, [])
                own = owned.setdefault(key, [])
                self._places[name].append((block_range, key, len(stack)))
                before, here = blocks_starting_in(block_range, span)
                if here.count:
                    self._owned_places[name].append((here, key, len(own)))
                first = len(stack) + before
                own.extend(range(first, first + here.count))
                stack.extend([number] * block_range.count)
        self._sum: dict[Key, Tensor] = {}
        self._average: dict[Key, Tensor] = {}
        self._inverse: dict[Key, Tensor] = {}
        self._owner: dict[Key, Tensor] = {}
        self._owned: dict[Key, Tensor | slice] = {}
        for key, numbers in factor_of.items():
            device, size = key
            own_m = torch.tensor(owned[key], dtype=torch.long, device=device)
            self._owned[key] = slice(None) if len(own_m) == len(numbers) else own_m
            self._owner[key] = torch.tensor(numbers, device=device)[own_m]
            zeros = torch.zeros(len(numbers), size, size, dtype=self.compute, device=device)
            self._sum[key] = zeros
            self._average[key] = torch.zeros_like(zeros[: len(own_m)], dtype=storage)
            self._inverse[key] = torch.zeros_like(zeros[: len(own_m)], dtype=storage)

    def span(self, dim: int) -> tuple[int, int]:
        """The share [start, stop) of a factor's dimensions whose blocks this rank owns."""
        if self.group is None:
            return 0, dim
        return rank_partition(dim, self.group.rank(), self.group.size())

    def _sums_of(self, name: str) -> Iterator[tuple[BlockRange, Tensor]]:
        for block_range, key, first in self._places[name]:
            yield block_range, self._sum[key][first : first + block_range.count]

    def add(self, name: str, rows_ND: Tensor) -> None:
        """Add sum over N of x x^T, block by block, to this step's sum of factor `name`."""
        rows_ND = rows_ND.to(self.compute)
        for block_range, sum_Mbb in self._sums_of(name):
            x = block_range.cut(rows_ND, 1)
            sum_Mbb.baddbmm_(x.permute(1, 2, 0), x.transpose(0, 1))
        self.counts[name] += rows_ND.shape[0]

    @torch.no_grad()
    def update(self, decay: float, shift: float | None = None) -> int:
        """Fold this step's mean over its positions into the averages, and begin a new sum.

        E_t = decay E_(t-1) + (1 - decay) S_t / N_t, from E_0 = 0: the paper's averages of A and G
        (app:exp-kfac). Factors without positions in this step keep their average. With a group,
        every rank calls this at the same time, and an error is one of all ranks.

        Every inverse becomes that of the new average, (E_t / (1 - decay^t) + shift I)^-1, by
        Cholesky; where `shift` is None the inverses stay.

        Returns:
            How many blocks of all ranks were not positive definite in float32.

        Raises:
            FloatingPointError: A sum is not finite; averages and inverses are left as they were.
            torch.linalg.LinAlgError: A block is no covariance, and not by rounding; the averages
                are left as they were.
        """
        self._check_finite()
        in_float64 = 0
        seen = {name for name, count in self.counts.items() if count}
        keep = [decay if name in seen else 1.0 for name in self.dims]
        gain = [(1 - decay) / max(self.counts[name], 1) for name in self.dims]
        updates = {name: count + (name in seen) for name, count in self.updates.items()}
        if shift is not None:
            # Before the averages change, or a block without an inverse would stay in them.
            scale = _bias_corrections(updates, decay)
            device = self.sums()[0].device

            def invert() -> int:
                return self._invert(keep, gain, scale, shift)

            in_float64 = inverse_sum_on_ranks(invert, self.group, device)
        for key, average in self._average.items():
            for part, new in self._folded(key, keep, gain):
                average[part] = new
            self._sum[key].zero_()
        self.updates = updates
        self.counts |= dict.fromkeys(seen, 0)
        return in_float64

    def _folded(
        self, key: Key, keep: list[float], gain: list[float]
    ) -> Iterator[tuple[slice, Tensor]]:
        """The averages of a stack with this step's sums, chunk by chunk."""
        keep_m = self._per_block(key, keep)
        gain_m = self._per_block(key, gain)
        sum_mbb = self._sum[key][self._owned[key]]
        average_mbb = self._average[key]
        for part in _chunks(average_mbb):
            new = average_mbb[part].to(self.compute) * keep_m[part]
            new.addcmul_(sum_mbb[part], gain_m[part])
            yield part, new.to(average_mbb.dtype)

    def _invert(
        self, keep: list[float], gain: list[float], scale: list[float], shift: float
    ) -> int:
        """Set every inverse owned here to that of the folded average; see `update`."""
        failed: list[Tensor] = []
        for key in self._average:
            for part, _, corrected in self._corrected(key, keep, gain, scale):
                inverse, failed_M = inverse_by_cholesky(corrected, shift)
                before = self._inverse[key][part]
                self._inverse[key][part] = torch.where(failed_M[:, None, None], before, inverse)
                failed.append(failed_M.any())
        # The device is waited for here, once, and not behind each chunk.
        if not any_inverse_failed(failed):
            return 0
        return self._invert_exactly(keep, gain, scale, shift, failed)

    def _invert_exactly(
        self,
        keep: list[float],
        gain: list[float],
        scale: list[float],
        shift: float,
        failed: list[Tensor],
    ) -> int:
        """Set the inverses of the chunks in which float32 was too coarse for some block."""
        in_float64 = 0
        flags = iter(failed)
        for key in self._average:
            for part, stored, corrected in self._corrected(key, keep, gain, scale):
                if not next(flags):
                    continue
                inverse, failures, singular = damped_inverse(corrected, shift, stored)
                if singular is not None:
                    owner = self._owner[key][part.start + singular]
                    raise torch.linalg.LinAlgError(
                        f"the factor {list(self.dims)[owner]} has a block of size {key[1]} that is"
                        " no covariance: eigenvalues are more negative than rounding makes them."
                        "\nHint: look for very large activations or gradients in this layer."
                    )
                self._inverse[key][part] = inverse
                in_float64 += failures
        return in_float64

    def _corrected(
        self, key: Key, keep: list[float], gain: list[float], scale: list[float]
    ) -> Iterator[tuple[slice, torch.dtype, Tensor]]:
        """The folded averages of a stack without the start from zero, and their stored dtype."""
        scale_M = self._per_block(key, scale)
        for part, new in self._folded(key, keep, gain):
            yield part, new.dtype, new.to(self.compute) * scale_M[part]

    def averages(self, decay: float) -> Iterator[tuple[Tensor, Tensor]]:
        """The bias-corrected averages owned here: (factor number of each block [m], [m, b, b])."""
        scale = _bias_corrections(self.updates, decay)
        for key, average in self._average.items():
            scale_M = self._per_block(key, scale)
            for part in _chunks(average):
                blocks = average[part].to(self.compute) * scale_M[part]
                yield self._owner[key][part], blocks

    def inverse(self, name: str) -> Iterator[tuple[BlockRange, Tensor]]:
        """The owned part of a factor's damped inverse."""
        for block_range, key, first in self._owned_places[name]:
            blocks_cbb = self._inverse[key][first : first + block_range.count]
            yield block_range, blocks_cbb.to(self.compute)

    def full_inverse(self, name: str) -> list[tuple[BlockRange, Tensor]]:
        """A factor's whole damped inverse, from all ranks; each calls this at the same time."""
        return self.full_inverses([name])[name]

    def full_inverses(self, names: Sequence[str]) -> dict[str, list[tuple[BlockRange, Tensor]]]:
        """Whole damped inverses of several factors, by one collective for each size of blocks.

        With a group, each rank calls this at the same time, for the same factors.
        """
        if self.group is None:
            return {name: list(self.inverse(name)) for name in names}
        stacks = self._stacks_of(names)
        next_block = dict.fromkeys(stacks, 0)
        whole: dict[str, list[tuple[BlockRange, Tensor]]] = {}
        for name in names:
            whole[name] = []
            for block_range, key, _ in self._places[name]:
                first = next_block[key]
                next_block[key] += block_range.count
                whole[name].append((block_range, stacks[key][first : next_block[key]]))
            for here, blocks in self.inverse(name):
                block_range, into = next(each for each in whole[name] if each[0].holds(here))
                at = (here.start - block_range.start) // here.size
                into[at : at + here.count] = blocks
        for stack in stacks.values():
            dist.all_reduce(stack, group=self.group)  # zeros but for one rank's: adds nothing
        return whole

    def _stacks_of(self, names: Sequence[str]) -> dict[Key, Tensor]:
        """Zeros for all blocks of some factors, a tensor for each device and size of blocks."""
        counts: dict[Key, int] = {}
        for name in names:
            for block_range, key, _ in self._places[name]:
                counts[key] = counts.get(key, 0) + block_range.count
        return {
            (device, size): torch.zeros(count, size, size, dtype=self.compute, device=device)
            for (device, size), count in counts.items()
        }

    def whole_elements(self, name: str) -> int:
        """Elements of a factor's whole inverse."""
        return sum(each.count * each.size**2 for each, _, _ in self._places[name])

    def sums(self) -> list[Tensor]:
        """This step's sums, one tensor [M, b, b] per stack."""
        return list(self._sum.values())

    def state_dict(self) -> dict[str, Any]:
        """Everything that later steps depend on: tensors (not copied), names and plain numbers.

        With a group, every rank calls this; averages and inverses are full on its first rank's CPU.
        """
        pending = any(self.counts.values())
        return {
            "dims": dict(self.dims),
            "blocks": self.blocks,
            "counts": dict(self.counts),
            "updates": dict(self.updates),
            "sums": list(self._sum.values()) if pending else None,
            "averages": [self._full(key, self._average[key]) for key in self._average],
            "inverses": [self._full(key, self._inverse[key]) for key in self._inverse],
        }

    def _full(self, key: Key, own_mbb: Tensor) -> Tensor:
        """A stack of all blocks from the owned ones of every rank."""
        if self.group is None:
            return own_mbb
        stack_Mbb = torch.zeros_like(self._sum[key], dtype=own_mbb.dtype)
        stack_Mbb[self._owned[key]] = own_mbb
        dist.all_reduce(stack_Mbb, group=self.group)
        return stack_Mbb.cpu() if self.group.rank() == 0 else stack_Mbb.new_empty(0)

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from `state`, bit for bit; ValueError if it is of other factors or settings."""
        dims, blocks = state["dims"], state["blocks"]
        if (dims, blocks) != (self.dims, self.blocks):
            differing = sorted(set(dims.items()) ^ set(self.dims.items()))
            raise ValueError(
                f"the K-FAC state was saved with blocks={blocks}, this one has"
                f" blocks={self.blocks}; differing factors: {differing[:4] or 'none'}.\nHint:"
                " resume with the model and the settings that wrote the state, or begin anew"
                " without it."
            )
        for store, key in ((self._average, "averages"), (self._inverse, "inverses")):
            for (stack, own), saved in zip(store.items(), state[key], strict=True):
                if own.dtype != saved.dtype:
                    raise ValueError(
                        f"the K-FAC state is stored as {saved.dtype}, this one as {own.dtype}.\n"
                        "Hint: set storage to what the run began with."
                    )
                owned = self._owned[stack]
                own.copy_(saved[owned if isinstance(owned, slice) else owned.to(saved.device)])
        pending = state["sums"] or [torch.zeros(())] * len(self._sum)
        for own, saved in zip(self._sum.values(), pending, strict=True):
            own.copy_(saved)
        self.counts = dict(state["counts"])
        self.updates = dict(state["updates"])

    def _per_block(self, key: Key, values: list[float]) -> Tensor:
        owner = self._owner[key]
        per_factor = torch.tensor(values, dtype=self.compute, device=owner.device)
        return per_factor.index_select(0, owner)[:, None, None]

    def _check_finite(self) -> None:
        if not any_inverse_failed([~total.sum().isfinite() for total in self._sum.values()]):
            return
        for name in self.dims:
            if not all(bool(part.isfinite().all()) for _, part in self._sums_of(name)):
                raise FloatingPointError(
                    f"the covariance of {name} is not finite in this step; the averages were left"
                    " as they were.\nHint: look for an infinite loss or activation; to go on"
                    " without this step, call KFAC.skip() and zero the gradients."
                )

    def discard(self) -> None:
        """Forget the sums of the current step."""
        for total in self._sum.values():
            total.zero_()
        self.counts = dict.fromkeys(self.dims, 0)


def _bias_corrections(updates: Mapping[str, int], decay: float) -> list[float]:
    """Factors that take the start from zero out of averages of so many updates each."""
    return [1 / (1 - decay**count) if count else 1.0 for count in updates.values()]


def _chunks(stack_Mbb: Tensor) -> Iterator[slice]:
    step = max(1, CHUNK // stack_Mbb.shape[-1] ** 2)
    for first in range(0, stack_Mbb.shape[0], step):
        yield slice(first, min(first + step, stack_Mbb.shape[0]))
