"""Forward passes in two halves: hidden states first, the output head only where it is needed.

B = sequences, T = tokens, D = hidden width, N = positions, V = vocabulary.
"""

from collections.abc import Sequence
from os.path import commonprefix

from torch import Tensor, nn
from transformers import DynamicCache


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


def common_prefix(prompts: Sequence[Sequence[int]]) -> int:
    """How many first tokens all prompts share, the last one of each left out."""
    return len(commonprefix([list(prompt[:-1]) for prompt in prompts]))


def worth_sharing(rows: int, width: int, prefix: int) -> bool:
    """Whether one pass over a prefix that all rows share saves a twentieth of their tokens."""
    return (rows - 1) * prefix > 0.05 * rows * width


def recomputes(model: nn.Module) -> bool:
    """Whether a pass makes activations again in the backward pass; it keeps no keys and values."""
    return model.training and getattr(model, "is_gradient_checkpointing", False)
