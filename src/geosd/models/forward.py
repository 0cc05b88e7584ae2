"""Forward passes in two halves: hidden states first, the output head only where it is needed.

B = sequences, T = tokens, D = hidden width, N = positions, V = vocabulary.
"""

from __future__ import annotations

from torch import Tensor, nn


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


def head_logits(model: nn.Module, hidden_ND: Tensor) -> Tensor:
    """Forward pass of the output head: logits [N, V] of hidden states [N, D].

    Any leading dimensions are kept.
    """
    return model.lm_head(hidden_ND)
