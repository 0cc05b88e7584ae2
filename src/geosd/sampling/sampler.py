"""The interface of samplers: prompts in, completions out, the same ones for the same seed."""

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, Protocol

from geosd.sampling.paused_part import PausedPart


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


class SamplerPrompts(NamedTuple):
    """Prompts that are sampled with one seed, whatever else is sampled at the time."""

    prompts: Sequence[Sequence[int]]
    seed: int


class Sampler(Protocol):
    """A program that completes prompts: transformers on a laptop, vLLM on a cluster.

    Attributes:
        on_finish: Called with each completion that the model ends, while others are still sampled.
        copies_weights: Whether a call copies the model's weights, one after another, before it
            samples. Otherwise it reads the model where it lies, and needs it whole.
        chunk: Completions of `sample_chunks` that are worth a file of their own.
        stop_requested: Called before each token; true leaves the chunk under way, with a
            `PartLeftError`. An engine whose requests end one by one does not call it.
        paused: Where a chunk is kept that is left in the middle; None keeps none.
    """

    on_finish: OnFinish | None
    copies_weights: bool
    chunk: int
    stop_requested: Callable[[], bool]
    paused: PausedPart | None

    def sample(
        self, prompts: Sequence[Sequence[int]], sampling: SamplingParams, seed: int
    ) -> list[Completion]:
        """One completion per prompt, in the prompts' order.

        Several samples of a problem are its prompt, as token ids without padding, several times
        over. The same seed, prompts and weights give the same completions on one machine. A
        request's draws depend on the seed and its place in the call alone, so what shares its batch
        changes a completion only by rounding.
        """
        done: dict[int, Completion] = {}
        for chunk in self.sample_chunks([SamplerPrompts(prompts, seed)], sampling):
            done |= chunk
        return [done[place] for place in range(len(prompts))]

    def sample_chunks(
        self,
        batches: Sequence[SamplerPrompts],
        sampling: SamplingParams,
        finished: Collection[int] = (),
    ) -> Iterator[dict[int, Completion]]:
        """Results of `sample` for each batch, as it ends, by the prompt's place among all batches.

        Prompts at the places `finished` need none. An engine that can takes all others at once:
        then there is one wait for the last response. A chunk may be empty: a chance to stop.
        """
        ...

    def join_sync(self) -> None:
        """Do the part of a call's copying that another process of a sharded model has in it."""

    def sync_values(self) -> dict[str, float]:
        """GB and seconds of the last call's copying, for the step log; empty where it copied none.

        They are `sync/gb` and `sync/seconds`.
        """
        return {}

    def record(self) -> dict[str, Any]:
        """Its entry in a manifest: all that can change a completion, besides seed and weights."""
        ...
