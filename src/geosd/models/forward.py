"""Forward passes in two halves: hidden states first, the output head only where it is needed.

B = sequences, T = tokens, D = hidden width, N = positions, V = vocabulary.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from os.path import commonprefix

from torch import Tensor, nn
from transformers import DynamicCache
from transformers.modeling_layers import GradientCheckpointingLayer


def last_hidden_states(model: nn.Module, ids_BT: Tensor, mask_BT: Tensor | None = None) -> Tensor:
    """Last hidden states [B, T, D] of a causal language model, after the final norm.

    `mask_BT` is true where there is a token; what stands at padding is without meaning. None:
    padding is on the right alone, where no token attends to it, and attention takes its fastest
    kernel.
    """
    padding = {}
    if mask_BT is not None:
        positions_BT = (mask_BT.long().cumsum(1) - 1).clamp(min=0)
        padding = {"attention_mask": mask_BT.long(), "position_ids": positions_BT}
    return model.model(input_ids=ids_BT, use_cache=False, **padding).last_hidden_state


def last_hidden_states_after(model: nn.Module, ids_BT: Tensor, prefix: int) -> Tensor:
    """Last hidden states [B, T - prefix, D] of rows whose first `prefix` tokens are the same.

    Padding is on the right. Keys and values of the common tokens are computed once, from the first
    row, and repeated; gradients flow through them.
    """
    cache = DynamicCache(config=model.config)
    model.model(input_ids=ids_BT[:1, :prefix], past_key_values=cache, use_cache=True)
    cache.batch_repeat_interleave(len(ids_BT))
    rest = model.model(input_ids=ids_BT[:, prefix:], past_key_values=cache, use_cache=True)
    return rest.last_hidden_state


def common_forward_prefix(prompts: Sequence[Sequence[int]]) -> int:
    """How many first tokens all prompts share, the last one of each left out."""
    return len(commonprefix([list(prompt[:-1]) for prompt in prompts]))


def prefix_worth_forward(rows: int, width: int, prefix: int) -> bool:
    """Whether one pass over a prefix that all rows share saves a twentieth of their tokens."""
    return (rows - 1) * prefix > 0.05 * rows * width


def recompute_layers(model: nn.Module) -> None:
    """Make activations of the layers again in the backward pass, in place of keeping them.

    transformers does so in training mode alone, which is the mode that turns dropout on. Dropout
    would count as drift: student and anchor would differ before any update, and a live teacher from
    itself. So the layers alone get that mode, and no module in or around them does; what a layer
    drops by a number of its own becomes zero. config.json, which is saved with the model, keeps its
    numbers.
    """
    model.gradient_checkpointing_enable({"use_reentrant": False})
    for module in model.modules():
        module.training = isinstance(module, GradientCheckpointingLayer)
        if module.training:
            _keep_all(module)


def _keep_all(layer: nn.Module) -> None:
    """Set a layer's own rates of dropout to zero."""
    for name, value in list(vars(layer).items()):
        if "drop" in name and isinstance(value, float):
            setattr(layer, name, 0.0)


def recomputes(model: nn.Module) -> bool:
    """Whether a pass makes activations again in the backward pass; it keeps no keys and values."""
    return any(
        isinstance(module, GradientCheckpointingLayer)
        and module.training
        and module.gradient_checkpointing
        for module in model.modules()
    )


@contextmanager
def evaluation_mode(model: nn.Module) -> Iterator[None]:
    """Inside, all of a model is in evaluation mode; outside, each module is in its own again."""
    training = [module for module in model.modules() if module.training]
    model.eval()
    try:
        yield
    finally:
        for module in training:
            module.training = True
