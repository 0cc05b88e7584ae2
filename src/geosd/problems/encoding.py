"""How a data set words its prompts, and the one place where text meets the tokenizer."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from geosd.problems.records import Problem
from geosd.problems.tokenizer_process import TextEncoder

if TYPE_CHECKING:
    from transformers import GenerationConfig, PreTrainedTokenizerBase


class PromptFormat(Protocol):
    """Interface of a data set's prompt format, such as `MiniaturePrompts` or `ChatPrompts`.

    A format may leave out `turn_ends`, the tokens that end an answer beside those of tokenizer and
    model, and `opens_thought`: prompts end in a thought, which a response must close.
    """

    turn_ends: Sequence[int] = ()
    opens_thought: bool = False

    def student(self, question: str) -> str:
        """The student's prompt: the question alone."""

    def teacher(self, question: str, solution: str) -> str:
        """The teacher's prompt: the question with a solution. It must end as the student's does."""

    def revealed_solution(self, solution: str, fraction: float) -> str:
        """The part of a solution that the teacher's prompt reveals: see `revealed_parts`."""


def end_tokens(generation: GenerationConfig) -> list[int]:
    """The tokens that end a response by a model's generation configuration, which may name none."""
    ends = generation.eos_token_id
    if ends is None:
        return []
    return list(ends) if isinstance(ends, list | tuple) else [ends]


def revealed_parts(parts: int, fraction: float) -> int:
    """How many parts of a solution a prompt format reveals: its first steps or sentences.

    The number is rounded up, and only the fraction 1 reveals the last part: the answer.

    Raises:
        ValueError: The fraction is outside [0, 1].

    Source: the paper, privilege sweep.

    Example:
        >>> revealed_parts(4, 0.5), revealed_parts(3, 0.9), revealed_parts(3, 1.0)
        (2, 2, 3)
    """
    if not 0 <= fraction <= 1:
        raise ValueError(
            f"privilege is {fraction}; allowed are fractions in [0, 1].\nHint: 1 shows the"
            " teacher the whole solution, 0.25 its first quarter."
        )
    if fraction == 1:
        return parts
    # The small term undoes products such as 0.2 * 15 = 3.0000000000000004.
    return min(math.ceil(fraction * parts - 1e-9), max(parts - 1, 0))


class Encoding:
    """Prompts and solutions as token ids, by a model's tokenizer, and ids as text.

    Prompt and response are tokenized on their own and joined as ids. In joined text, a tokenizer
    could fuse the prompt's last character with the response's first, and student and teacher would
    no longer score the same tokens. Special tokens that belong to a prompt are in its text: a chat
    template writes the beginning of sequence itself, and the tokenizer adds none.

    Responses also end where the model's `generation` settings say to stop: Qwen3 and Olmo 3 end
    turns with one token and conversations with another. ValueError where no token ends a response.

    `teacher_prompts` are those of a teacher that thinks where the student, `prompts`, does not, or
    the reverse. They end differently: of Qwen3 that does not think, after an empty thought.
    """

    def __init__(
        self,
        tokenizer: PreTrainedTokenizerBase,
        prompts: PromptFormat,
        generation: GenerationConfig | None = None,
        teacher_prompts: PromptFormat | None = None,
    ) -> None:
        self.tokenizer = tokenizer
        self._encoder = TextEncoder(tokenizer)
        self.prompts = prompts
        self.teacher_prompts = teacher_prompts or prompts
        stops = [] if generation is None else end_tokens(generation)
        turn_ends = getattr(prompts, "turn_ends", ())
        ends = dict.fromkeys([tokenizer.eos_token_id, *stops, *turn_ends])
        self.end_ids = tuple(end for end in ends if end is not None)
        """Tokens that end a response; the first is what a response is given to end with."""
        # Where the end of a thought is a special token, the text of a response cannot show it.
        self.opens_thought = getattr(prompts, "opens_thought", False) and "</think>" in self.text(
            self._ids("</think>")
        )
        """Whether prompts open a thought that the text of a response must close."""
        if not self.end_ids:
            raise ValueError(
                f"no token ends a response of {tokenizer.name_or_path or 'the tokenizer'}: neither"
                " tokenizer nor generation_config.json names one.\nHint: name it as eos_token in"
                " tokenizer_config.json."
            )

    @property
    def pad_id(self) -> int:
        """Token id that pads encoded rows; it is masked wherever it stands."""
        pad = self.tokenizer.pad_token_id
        return self.end_ids[0] if pad is None else pad

    def student(self, problem: Problem) -> list[int]:
        """Token ids of the student's prompt, the question alone: x."""
        return self._ids(self.prompts.student(problem.question))

    def teacher(self, problem: Problem, solution: str, privilege: float = 1.0) -> list[int]:
        """Token ids of the teacher's prompt, (x, c), with a fraction `privilege` of c."""
        revealed = self.teacher_prompts.revealed_solution(solution, privilege)
        return self._ids(self.teacher_prompts.teacher(problem.question, revealed))

    def response(self, solution: str) -> list[int]:
        """Token ids of a solution as a response, end of sequence included."""
        return [*self._ids(solution), self.end_ids[0]]

    def text(self, ids: Sequence[int]) -> str:
        """Token ids of a response decoded to text, without special tokens."""
        return self._encoder.text(ids)

    def _ids(self, text: str) -> list[int]:
        return self._encoder.ids(text)
