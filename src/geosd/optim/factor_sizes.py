"""How many bytes K-FAC keeps, computed from dimensions alone."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from geosd.optim.layer_selection import (
    Select,
    layer_is_in_block,
    layers_of_shared_input,
    select_layers,
)
from geosd.optim.partition import partition

if TYPE_CHECKING:
    import torch
    from torch import nn

ITEM_BYTES = {"float64": 8, "float32": 4, "bfloat16": 2}


@dataclass(frozen=True)
class FactorDimensions:
    """The sizes of a decoder that its seven projections depend on (the paper's table of models).

    `hidden` is d, `ffn` d_ff, `heads` counts query heads, and `head` is the width h of one head.
    """

    layers: int
    hidden: int
    ffn: int
    heads: int
    kv_heads: int
    head: int

    def projections(self) -> Iterator[tuple[str, int, int]]:
        """(name, input dimensions, output dimensions) of every projection of every block."""
        q, kv = self.heads * self.head, self.kv_heads * self.head
        for layer in range(self.layers):
            yield f"{layer}.q_proj", self.hidden, q
            yield f"{layer}.k_proj", self.hidden, kv
            yield f"{layer}.v_proj", self.hidden, kv
            yield f"{layer}.o_proj", q, self.hidden
            yield f"{layer}.gate_proj", self.hidden, self.ffn
            yield f"{layer}.up_proj", self.hidden, self.ffn
            yield f"{layer}.down_proj", self.ffn, self.hidden


def factor_bytes(
    model: FactorDimensions | nn.Module,
    blocks: int = 16,
    dtype: torch.dtype | str = "float32",
    *,
    share_inputs: bool = True,
    select: Select = layer_is_in_block,
) -> int:
    """Bytes that K-FAC keeps for a model: the averages and damped inverses of its factors.

    While a step is accumulated its float32 sums come on top: half as much again in float32 storage.

    Args:
        model: The model (on any device, "meta" too), or its dimensions.
        blocks: The paper's g. With 1 and half the result: the table's column "Full EMA".
        dtype: Of averages and inverses.
        share_inputs: One A for q, k, v and one for gate, up, as `KFAC` keeps them; False counts one
            for each, which is the paper's formula 7 d^2 + 2 d_q^2 + 2 d_kv^2 + 3 d_ff^2.
        select: Which linear layers of a module; without effect on `FactorDimensions`.

    Source: the paper, "K-FAC memory" (app:compute) and its table; a gigabyte there is 10^9 bytes.
    """
    if isinstance(model, FactorDimensions):
        layers = list(model.projections())
    else:
        selected = select_layers(model, select)
        layers = [(name, m.in_features, m.out_features) for name, m in selected.items()]
    names = [name for name, _, _ in layers]
    input_owners = layers_of_shared_input(names) if share_inputs else {name: name for name in names}
    elements = 0
    for name, inputs, outputs in layers:
        sides = (outputs, inputs) if input_owners[name] == name else (outputs,)
        elements += sum(_factor_elements(dim, blocks) for dim in sides)
    return 2 * elements * ITEM_BYTES[str(dtype).removeprefix("torch.")]


def adapter_factor_bytes(
    model: FactorDimensions,
    rank: int,
    targets: Collection[str],
    blocks: int = 16,
    dtype: torch.dtype | str = "float32",
) -> int:
    """Bytes that K-FAC keeps where LoRA's matrices alone train, as `factor_bytes` counts them.

    Each matrix is a layer with factors of its own, that down to the rank and that up from it.
    """
    elements = 0
    for name, inputs, outputs in model.projections():
        if name.rpartition(".")[2] in targets:
            sides = (inputs, rank, rank, outputs)
            elements += sum(_factor_elements(dim, blocks) for dim in sides)
    return 2 * elements * ITEM_BYTES[str(dtype).removeprefix("torch.")]


def adapter_factor_parameters(model: FactorDimensions, rank: int, targets: Collection[str]) -> int:
    """Parameters of LoRA's matrices: rank (d_in + d_out) for each layer that has them."""
    return sum(
        rank * (inputs + outputs)
        for name, inputs, outputs in model.projections()
        if name.rpartition(".")[2] in targets
    )


def _factor_elements(dim: int, blocks: int) -> int:
    return sum(part.count * part.size**2 for part in partition(dim, blocks))
