"""Forward passes in two halves: hidden states first, the output head only where it is needed.

B = sequences, T = tokens, D = hidden width, N = positions, V = vocabulary.
"""

from __future__ import annotations

from torch import Tensor, nn


def last_hidden_states(model: nn.Module, ids_BT: Tensor, mask_BT: Tensor) -> Tensor:
    """Forward pass up to the last hidden states, after the final norm and before the head.

    Args:
        model: A causal language model with the inner model as `.model`.
        ids_BT: Token ids, padded on either side.
        mask_BT: True or 1 where there is a token, False or 0 where there is padding.

    Returns:
        Hidden states [B, T, D]; what stands at padding is without meaning.
    """
    positions_BT = (mask_BT.long().cumsum(1) - 1).clamp(min=0)
    return model.model(
        input_ids=ids_BT,
        attention_mask=mask_BT.long(),
        position_ids=positions_BT,
        use_cache=False,
    ).last_hidden_state


def head_logits(model: nn.Module, hidden_ND: Tensor) -> Tensor:
    """Forward pass of the output head: logits [N, V] of hidden states [N, D].

    Any leading dimensions are kept.
    """
    return model.lm_head(hidden_ND)
