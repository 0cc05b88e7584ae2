"""What a sampler is: prompts in, completions out, the same ones for the same seed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, Protocol


@dataclass(frozen=True)
class SamplingParams:
    """How tokens are drawn.

    Attributes:
        temperature: Divides the logits; 1 samples the model as it is, 0 takes the likeliest token.
        top_p: Smallest set of tokens with at least this mass, after the temperature, is kept; 1
            keeps all.
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


OnFinish = Callable[[int, Completion], None]
"""(index of the prompt, completion); called for each completion that the model ends itself."""


class PromptBatch(NamedTuple):
    """Prompts that are sampled with one seed, whatever else is sampled beside them."""

    prompts: Sequence[Sequence[int]]
    seed: int


class Sampler(Protocol):
    """Anything that completes prompts: transformers on a laptop, vLLM on a cluster.

    Attributes:
        on_finish: Called with each completion that the model ends, while others are still sampled.
        copies_weights: Whether a call copies the model's weights, one after another, before it
            samples. Otherwise it reads the model where it lies, and needs it whole.
    """

    on_finish: OnFinish | None
    copies_weights: bool

    def sample(
        self, prompts: Sequence[Sequence[int]], sampling: SamplingParams, seed: int
    ) -> list[Completion]:
        """One completion per prompt, in the prompts' order.

        Several samples of a problem are its prompt several times over.

        Args:
            prompts: Token ids of each prompt, without padding.
            sampling: Temperature, nucleus and cap.
            seed: The same seed, prompts and weights give the same completions on one machine.
        """
        ...

    def sample_batches(
        self, batches: Sequence[PromptBatch], sampling: SamplingParams
    ) -> list[list[Completion]]:
        """What `sample` gives for each batch, of weights that stay the same.

        An engine that can takes all batches at once: then one wait for the last response, not one a
        batch.
        """
        ...

    def record(self) -> dict[str, Any]:
        """What a manifest says of it: all that can change a completion beside seed and weights."""
        ...
