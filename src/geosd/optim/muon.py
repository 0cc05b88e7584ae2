"""Muon in K-FAC's place: steps of the projections with singular values that are nearly all one.

Muon averages the gradient of a matrix, and orthogonalises the average: with G = U S V^T it steps by
about U V^T, in every direction alike. K-FAC shrinks the directions that the Fisher information says
are steep; Muon makes all of them equally long, and asks no curvature. Both take the matrices of the
transformer blocks, and leave embeddings, norms and the output head to AdamW.
"""

from collections.abc import Mapping

import torch
import torch.distributed as dist
from torch import Tensor, nn

from geosd.optim.dtensors import (
    DTensorSquaredNorm,
    copy_full_into,
    full_tensor,
    is_dtensor,
    local_shard,
)
from geosd.optim.layer_selection import block_coverage, layer_is_in_block, select_layers

MOMENTUM = 0.95
"""Share that the averaged gradient keeps in a step, with Nesterov's look ahead; torch's default."""
BUFFER = "momentum_buffer"
"""torch's name of the averaged gradient."""


class Muon:
    """`torch.optim.Muon` on the matrices of a model's transformer blocks.

    The rate is AdamW's: a step has about the size of an AdamW step at the same rate
    (`adjust_lr_fn="match_rms_adamw"`, .2 sqrt(max(O, I)) times the orthogonal matrix [O, I]).

    Args:
        model: Of its linear layers those of the blocks are taken, as `KFAC` takes them; their
            weights may be sharded by FSDP2, in rows.
        weight_decay: Decoupled.

    Attributes:
        matrices: The weights that are trained, by the names of `model.named_parameters()`.

    Raises:
        ValueError: The blocks have weights that are no matrices of linear layers, or a matrix has
            fewer rows than there are ranks.

    Source: Jordan et al., "Muon: An optimizer for hidden layers in neural networks" (2024); the
    rate is that of Liu et al. (arXiv 2502.16982). It is no part of the paper.
    """

    def __init__(self, model: nn.Module, weight_decay: float = 0.0) -> None:
        layers = select_layers(model, layer_is_in_block, "Muon")
        share, left_out = block_coverage(model, layers)
        if left_out:
            raise ValueError(
                f"Muon takes {share:.1%} of the weights of the model's layers; it cannot take"
                f" {', '.join(left_out)}.\nHint: Muon takes weights of torch.nn.Linear; for another"
                " model take training.optimiser.rule adamw, or kfac with a least_share."
            )
        weights = {id(layer.weight) for layer in layers.values()}
        named = model.named_parameters()
        self.matrices = {name: p for name, p in named if id(p) in weights}
        for name, matrix in self.matrices.items():
            _check_shards(name, matrix)
        # One optimiser a matrix, so that its step can be measured with one matrix in memory.
        self._optimisers = {
            name: torch.optim.Muon(
                [matrix],
                weight_decay=weight_decay,
                momentum=MOMENTUM,
                adjust_lr_fn="match_rms_adamw",
            )
            for name, matrix in self.matrices.items()
        }
        self._moved: dict[str, Tensor] = {}

    @torch.no_grad()
    def step(self, lr: float) -> None:
        """Take one step of every matrix that has a gradient."""
        self._moved = {}
        for name, optimiser in self._optimisers.items():
            matrix = self.matrices[name]
            if matrix.grad is None:
                continue
            (group,) = optimiser.param_groups
            group["lr"] = lr
            decayed = local_shard(matrix) * (1 - lr * group["weight_decay"])
            optimiser.step()
            self._moved[name] = (local_shard(matrix) - decayed).norm().square()

    def add_norms(self, moved: DTensorSquaredNorm, weights: DTensorSquaredNorm) -> None:
        """Add the squared norms of the last step, without decay, and of the matrices."""
        for name, matrix in self.matrices.items():
            weights.add(matrix)
            if name in self._moved:
                moved.add_square(self._moved[name], matrix)

    def zero_grad(self) -> None:
        """Drop the gradients of the matrices."""
        for matrix in self.matrices.values():
            matrix.grad = None

    def state_dict(self) -> dict[str, Tensor]:
        """The averaged gradient of each matrix, by name; of sharded ones on the first rank alone.

        Every rank calls this.
        """
        averages = {}
        for name, optimiser in self._optimisers.items():
            matrix = self.matrices[name]
            average = optimiser.state.get(matrix, {}).get(BUFFER)
            if average is None:
                continue
            whole = full_tensor(average)
            if not is_dtensor(average) or dist.get_rank() == 0:
                averages[name] = whole.cpu()
        return averages

    @torch.no_grad()
    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        """Continue from `state`, the full one on every rank, bit for bit.

        Raises:
            ValueError: It names a matrix that this model does not train.
        """
        if unknown := sorted(set(state) - set(self.matrices)):
            raise ValueError(
                f"the saved state of Muon is of {', '.join(unknown)}, which this model does not"
                " train.\nHint: resume with the model that wrote the state."
            )
        for name, optimiser in self._optimisers.items():
            matrix = self.matrices[name]
            optimiser.state.pop(matrix, None)
            if name in state:
                average = torch.zeros_like(matrix)
                copy_full_into(state[name], into=average)
                optimiser.state[matrix][BUFFER] = average


def _check_shards(name: str, matrix: nn.Parameter) -> None:
    """Refuse a matrix that torch's Muon cannot step in its shards.

    Its products of sharded matrices are exact up to the rounding of bfloat16 where every rank holds
    rows; Newton-Schulz magnifies that rounding in a direction with a small singular value. Where a
    rank holds none they are replicated, which no step in place can add to a shard.
    """
    if not is_dtensor(matrix):
        return
    ranks, rows = matrix.device_mesh.size(), matrix.shape[0]
    placed = ", ".join(map(str, matrix.placements))
    by_rows = all(each.is_shard(0) for each in matrix.placements)
    if not by_rows or rows < ranks:
        raise ValueError(
            f"Muon cannot step {name}, {rows} rows over {ranks} ranks as {placed}.\nHint: it"
            " takes matrices in shards of rows, at least one a rank; train on fewer ranks, or by"
            " the rules adamw and kfac."
        )
