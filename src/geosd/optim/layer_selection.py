"""Which linear layers are preconditioned, and which of them read the same input."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # the sizes of factors are counted without torch
    from torch import nn

PROJECTIONS = ("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj")
ADAPTERS = ("lora_A", "lora_B")
# Layers that read one input have one A: storing it once is exact and saves three of seven.
SAME_INPUT = (("q_proj", "k_proj", "v_proj"), ("gate_proj", "up_proj"))

Select = Callable[[str, "nn.Linear"], bool]


def is_projection(name: str, module: nn.Linear) -> bool:
    """Whether a module is one of a block's seven projections by its name.

    Or an adapter's matrix in one: peft names the two of LoRA `q_proj.lora_A.NAME` and `lora_B`.

    Source: the paper, "Kronecker factorization" (app:exp-kfac).
    """
    *path, leaf = name.split(".")
    return leaf in PROJECTIONS or bool({*path} & {*ADAPTERS} and {*path} & {*PROJECTIONS})


def select_layers(model: nn.Module, select: Select) -> dict[str, nn.Linear]:
    """The trained linear layers that `select` takes; ValueError if none, or two share a weight."""
    from torch import nn

    linears = {name: m for name, m in model.named_modules() if isinstance(m, nn.Linear)}
    taken = {n: m for n, m in linears.items() if m.weight.requires_grad and select(n, m)}
    if not taken:
        raise ValueError(
            f"no linear layer was selected for K-FAC; the model has {list(linears)[:8] or 'none'}"
            f"{' and more' if len(linears) > 8 else ''}.\nHint: select=lambda name, module: ..."
            " takes the full name; layers whose weight does not require a gradient are left out."
        )
    by_weight: dict[int, str] = {}
    for name, module in taken.items():
        if (other := by_weight.setdefault(id(module.weight), name)) != name:
            raise ValueError(
                f"{other} and {name} share one weight, which K-FAC would precondition twice.\n"
                "Hint: leave one of them out in select; tied embeddings belong outside K-FAC."
            )
    return taken


def shared_input_factors(names: list[str]) -> dict[str, str]:
    """For each selected layer, the layer that keeps its input factor A: one with the same input.

    Example:
        >>> shared_input_factors(["gate_proj", "up_proj", "down_proj"])
        {'gate_proj': 'gate_proj', 'up_proj': 'gate_proj', 'down_proj': 'down_proj'}
    """
    input_owners = {}
    for name in names:
        parent, _, leaf = name.rpartition(".")
        same_input = next((group for group in SAME_INPUT if leaf in group), (leaf,))
        full = (f"{parent}.{other}" if parent else other for other in same_input)
        input_owners[name] = next(other for other in full if other in input_owners or other == name)
    return input_owners
