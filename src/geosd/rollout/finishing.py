"""Hearing of a response when it ends, while transformers generates the rest of its batch."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

import torch
from torch import Tensor
from transformers import StoppingCriteria

from geosd.rollout.sampler import Completion

OnFinish = Callable[[int, Completion], None]
"""(place of its prompt, the completion), called once for each that the model itself ends."""


class Finishing(StoppingCriteria):
    """Stops nothing; tells of each row that has just ended.

    B = rows of a batch, L = tokens so far.

    Args:
        places: Of each row's prompt.
        width: Tokens of the padded prompts.
        end_ids: Tokens that end a response.
        tell: Who wants to know.
    """

    def __init__(
        self, places: list[int], width: int, end_ids: Collection[int], tell: OnFinish
    ) -> None:
        """Nothing has ended yet."""
        self.going = dict(enumerate(places))
        self.width, self.end_ids, self.tell = width, frozenset(end_ids), tell

    def __call__(self, input_ids: Tensor, scores: Tensor, **kwargs: Any) -> Tensor:
        """Look at the newest token [B] of the sequences [B, L]."""
        newest = input_ids[:, -1].tolist()
        for row in [row for row in self.going if newest[row] in self.end_ids]:
            response = input_ids[row, self.width :].tolist()
            self.tell(self.going.pop(row), Completion(tuple(response), "stop"))
        return torch.zeros(len(newest), dtype=torch.bool, device=input_ids.device)
