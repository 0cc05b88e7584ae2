"""Which linear layers are preconditioned, what they leave out, and which read the same input."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # the sizes of factors are counted without torch
    from torch import nn

PROJECTIONS = ("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj")
"""The paper's seven; other families fuse or rename some."""
FUSED = ("qkv_proj", "gate_up_proj")
"""Several of them in one matrix, as in Phi-3 and GLM-4; LoRA is placed by both lists."""
EXPERTS = "experts"
# Layers that read one input have one A: storing it once is exact and saves three of seven.
SAME_INPUT = (("q_proj", "k_proj", "v_proj"), ("gate_proj", "up_proj"))

Select = Callable[[str, "nn.Linear"], bool]


def layer_is_in_block(name: str, module: nn.Linear) -> bool:
    """Whether a linear layer lies in a transformer block, or is called as one of the seven.

    A block is an element of a list of modules, so a number stands in the layer's name. In Qwen3,
    Llama and OLMo 3 its linear layers are the paper's seven projections; fused ones (`qkv_proj`),
    those of other names, routers that are linear layers, and the matrices of LoRA belong to it,
    too. Single experts do not: each reads some of the positions only.

    Source: the paper, "Kronecker factorization" (app:exp-kfac).

    Example:
        >>> names = ("model.layers.0.mlp.gate_up_proj", "lm_head")
        >>> [layer_is_in_block(name, None) for name in names]
        [True, False]
    """
    *path, leaf = name.split(".")
    if EXPERTS in path:
        return False
    return leaf in PROJECTIONS or any(part.isdigit() for part in path)


def select_layers(model: nn.Module, select: Select, method: str = "K-FAC") -> dict[str, nn.Linear]:
    """The trained linear layers that `select` takes for a method, which errors name.

    Raises:
        ValueError: It takes none, or two that share a weight.
    """
    from torch import nn

    linears = {name: m for name, m in model.named_modules() if isinstance(m, nn.Linear)}
    taken = {n: m for n, m in linears.items() if m.weight.requires_grad and select(n, m)}
    if not taken:
        more = " and more" if len(linears) > 8 else ""
        raise ValueError(
            f"no linear layer was selected for {method}; the model has"
            f" {list(linears)[:8] or 'none'}{more}.\nHint: select=lambda name, module: ..."
            " takes the full name; layers whose weight does not require a gradient are left out."
        )
    by_weight: dict[int, str] = {}
    for name, module in taken.items():
        if (other := by_weight.setdefault(id(module.weight), name)) != name:
            raise ValueError(
                f"{other} and {name} share one weight, which {method} would take twice.\n"
                f"Hint: leave one of them out in select; tied embeddings belong outside {method}."
            )
    return taken


def block_coverage(
    model: nn.Module, layers: Mapping[str, nn.Linear]
) -> tuple[float, tuple[str, ...]]:
    """The share of the blocks' trained weights that lie in `layers`, and the names of the others.

    Weights of two and more dimensions count, those of embeddings do not. A name stands for the same
    weight of every block, with `*` for the numbers. The share of a model without blocks is 1.
    """
    from torch import nn

    taken = {id(layer.weight) for layer in layers.values()}
    modules = dict(model.named_modules())
    counted, total = 0, 0
    left_out: dict[str, None] = {}  # a set in order
    for name, weight in model.named_parameters():
        owner = name.rpartition(".")[0]
        module = modules[owner]
        if not weight.requires_grad or weight.dim() < 2 or isinstance(module, nn.Embedding):
            continue
        parts = owner.split(".")
        if isinstance(module, nn.Linear):
            parts.pop()  # a linear layer that is itself the element of a list is no block
        if not any(part.isdigit() for part in parts):
            continue
        total += weight.numel()
        if id(weight) in taken:
            counted += weight.numel()
        else:
            path = name.removesuffix(".weight").split(".")
            left_out[".".join("*" if part.isdigit() else part for part in path)] = None
    return (counted / total if total else 1.0), tuple(left_out)


def layers_of_shared_input(names: list[str]) -> dict[str, str]:
    """For each selected layer, the layer that keeps its input factor A: one with the same input.

    Example:
        >>> layers_of_shared_input(["gate_proj", "up_proj", "down_proj"])
        {'gate_proj': 'gate_proj', 'up_proj': 'gate_proj', 'down_proj': 'down_proj'}
    """
    input_owners = {}
    for name in names:
        parent, _, leaf = name.rpartition(".")
        same_input = next((group for group in SAME_INPUT if leaf in group), (leaf,))
        full = (f"{parent}.{other}" if parent else other for other in same_input)
        input_owners[name] = next(other for other in full if other in input_owners or other == name)
    return input_owners
