"""What a sampler is: prompts in, completions out, the same ones for the same seed."""

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, Protocol

from geosd.problems.records import Problem


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


class ContextError(ValueError):
    """A prompt and its response may be longer than what a model was made to read."""


class NonFiniteLogitsError(FloatingPointError):
    """A model gave a row of logits that is no distribution: broken numbers, not a bad response.

    Attributes:
        place: Of the prompt in the call of the sampler.
        position: Of the token in the response, from 1.
    """

    def __init__(self, place: int, position: int, problem: str | None = None) -> None:
        """Say where; `problem` is what the prompt at the place asks, where it is known."""
        self.place, self.position = place, position
        asked = f"prompt {place}" if problem is None else f"problem {problem}"
        super().__init__(
            f"the logits of token {position} of a response to {asked} are not finite.\nHint: the"
            " weights are not finite, or the precision is too small for them: look at the training"
            " that made them, or set rollout.precision to float32."
        )


@contextmanager
def named_problems(problems: Sequence[Problem]) -> Iterator[None]:
    """Context in which broken logits are reported with the problem of each prompt of a call."""
    try:
        yield
    except NonFiniteLogitsError as error:
        raise NonFiniteLogitsError(error.place, error.position, problems[error.place].id) from error


def check_context(context: int | None, prompt: int, cap: int, reader: str = "the model") -> None:
    """Refuse a prompt that leaves too little of a model's context for a response, all in tokens.

    `context` is what the model was made to read (`max_position_embeddings`); None is any number.

    Raises:
        ContextError: They are too long together.
    """
    if context is not None and prompt + cap > context:
        raise ContextError(
            f"{reader} may have to read {prompt + cap} tokens, {prompt} of a prompt and {cap} of a"
            f" response, and its context is {context}.\nHint: lower response_tokens, leave out the"
            " problems with the longest questions or solutions, or take a model of a longer"
            " context (max_position_embeddings of its config.json)."
        )


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
    """What completes prompts: transformers on a laptop, vLLM on a cluster.

    Attributes:
        on_finish: Called with each completion that the model ends, while others are still sampled.
        copies_weights: Whether a call copies the model's weights, one after another, before it
            samples. Otherwise it reads the model where it lies, and needs it whole.
        chunk: Completions of `sample_chunks` that are worth a file of their own.
    """

    on_finish: OnFinish | None
    copies_weights: bool
    chunk: int

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
        for chunk in self.sample_chunks([PromptBatch(prompts, seed)], sampling):
            done |= chunk
        return [done[place] for place in range(len(prompts))]

    def sample_chunks(
        self,
        batches: Sequence[PromptBatch],
        sampling: SamplingParams,
        finished: Collection[int] = (),
    ) -> Iterator[dict[int, Completion]]:
        """What `sample` gives for each batch, as it ends, by the prompt's place among all batches.

        Prompts at the places `finished` need none. An engine that can takes all others at once:
        then there is one wait for the last response. A chunk may be empty: a chance to stop.
        """
        ...

    def record(self) -> dict[str, Any]:
        """What a manifest says of it: all that can change a completion beside seed and weights."""
        ...
