"""Forward passes in two halves: hidden states first, the output head only where it is needed.

B = sequences, T = tokens, D = hidden width, N = positions, V = vocabulary.
"""

from torch import Tensor, nn
from transformers import DynamicCache

from geosd.models.output_head import output_logits


def last_hidden_states(model: nn.Module, ids_BT: Tensor, mask_BT: Tensor | None = None) -> Tensor:
    """Forward pass up to the last hidden states, after the final norm and before the head.

    Args:
        model: A causal language model with the inner model as `.model`.
        ids_BT: Token ids, padded on either side.
        mask_BT: True or 1 where there is a token, False or 0 where there is padding. None where
            padding is on the right alone: no token attends to what follows it, so that no mask is
            built, and attention takes its fastest kernel.

    Returns:
        Hidden states [B, T, D]; what stands at padding is without meaning.
    """
    padding = {}
    if mask_BT is not None:
        positions_BT = (mask_BT.long().cumsum(1) - 1).clamp(min=0)
        padding = {"attention_mask": mask_BT.long(), "position_ids": positions_BT}
    return model.model(input_ids=ids_BT, use_cache=False, **padding).last_hidden_state


def last_hidden_states_after(model: nn.Module, ids_BT: Tensor, prefix: int) -> Tensor:
    """Last hidden states of rows that begin with the same tokens, which go through the model once.

    Keys and values of the common tokens are computed from the first row and repeated; gradients
    flow through them.

    Args:
        model: A causal language model with the inner model as `.model`.
        ids_BT: Token ids, padded on the right if at all; the first `prefix` columns are all equal.
        prefix: At least 1, and below T.

    Returns:
        Hidden states of the columns from `prefix` on [B, T - prefix, D].
    """
    cache = DynamicCache(config=model.config)
    model.model(input_ids=ids_BT[:1, :prefix], past_key_values=cache, use_cache=True)
    cache.batch_repeat_interleave(len(ids_BT))
    rest = model.model(input_ids=ids_BT[:, prefix:], past_key_values=cache, use_cache=True)
    return rest.last_hidden_state


def head_logits(model: nn.Module, hidden_ND: Tensor) -> Tensor:
    """Forward pass of a model's output head: logits [..., V] of hidden states [..., D].

    In float32 from bfloat16; see `geosd.models.output_head`.
    """
    return output_logits(model.lm_head, hidden_ND)
