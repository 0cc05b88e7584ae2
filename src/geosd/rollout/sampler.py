"""What a sampler is: prompts in, completions out, the same ones for the same seed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol


@dataclass(frozen=True)
class Decoding:
    """How tokens are drawn.

    Attributes:
        temperature: Divides the logits; 1 samples the model as it is.
        top_p: Smallest set of tokens with at least this mass is kept; 1 keeps all.
        max_new_tokens: The response cap, in tokens, end-of-sequence included.
    """

    temperature: float
    top_p: float
    max_new_tokens: int


@dataclass(frozen=True)
class Completion:
    """One sampled response.

    Attributes:
        ids: The response's tokens; the last is the end-of-sequence token when `finish` is "stop".
        finish: "stop" if the model ended the response itself, "length" if the cap did.
    """

    ids: tuple[int, ...]
    finish: Literal["stop", "length"]


class Sampler(Protocol):
    """Anything that completes prompts: transformers here, an inference engine elsewhere."""

    def sample(
        self, prompts: Sequence[Sequence[int]], decoding: Decoding, seed: int
    ) -> list[Completion]:
        """One completion per prompt, in the prompts' order.

        Args:
            prompts: Token ids of each prompt, without padding.
            decoding: Temperature, nucleus and cap.
            seed: The same seed, prompts and weights give the same completions on one machine.
        """
        ...
