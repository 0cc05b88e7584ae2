"""Prompts and responses as token ids: the one place where text meets the tokenizer."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Protocol

from transformers import GenerationConfig, PreTrainedTokenizerBase

from geosd.problems.records import Problem


class PromptFormat(Protocol):
    """The wording of prompts, of the miniature or of a chat model."""

    def student(self, question: str) -> str:
        """The prompt of the question alone."""
        ...

    def teacher(self, question: str, solution: str) -> str:
        """The prompt of the same question with a solution.

        The prompt must end as the student's does: then the first token of the response stands in
        the same place in both.
        """
        ...

    def truncate_solution(self, solution: str, fraction: float) -> str:
        """The first `fraction` of a solution, the privilege of the teacher: `revealed_parts`."""
        ...


def revealed_parts(parts: int, fraction: float) -> int:
    """How many steps or sentences of a solution a fraction of it reveals, counted from the first.

    The number is rounded up, and only the fraction 1 reveals the last part: the answer.

    Args:
        parts: Steps or sentences of the solution.
        fraction: How much is revealed, in [0, 1].

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


def stop_token_ids(generation: GenerationConfig | None) -> tuple[int, ...]:
    """The tokens at which a released model's generation_config.json says to stop.

    Qwen3 lists `<|im_end|>` and `<|endoftext|>`, Olmo 3 too: its template ends turns with the one
    and conversations with the other.
    """
    ends = generation.eos_token_id if generation is not None else None
    return () if ends is None else tuple(ends) if isinstance(ends, list | tuple) else (ends,)


class Encoding:
    """Renders problems for student and teacher, and reads responses back.

    Prompt and response are tokenized on their own and joined as ids. In joined text, a tokenizer
    could fuse the prompt's last character with the response's first, and student and teacher would
    no longer score the same tokens.

    Special tokens that belong to a prompt are in its text: a chat template writes the beginning of
    sequence itself, and the tokenizer adds none, or there would be two.

    Args:
        tokenizer: The model's own.
        prompts: How a question, and a question with a solution, are worded.
        stops: Tokens at which the model's release stops, in addition to the tokenizer's end of
            sequence; see `stop_token_ids`.
    """

    def __init__(
        self,
        tokenizer: PreTrainedTokenizerBase,
        prompts: PromptFormat,
        stops: Sequence[int] = (),
    ) -> None:
        """Remember tokenizer, wording and stops."""
        self.tokenizer = tokenizer
        self.prompts = prompts
        self.end_ids = tuple(dict.fromkeys((tokenizer.eos_token_id, *stops)))
        """Tokens that end a response; the first is what a response is given to end with."""

    @property
    def pad_id(self) -> int:
        """Token that fills rows; it is masked wherever it stands."""
        pad = self.tokenizer.pad_token_id
        return self.end_ids[0] if pad is None else pad

    def student(self, problem: Problem) -> list[int]:
        """The prompt of the question alone: x."""
        return self._ids(self.prompts.student(problem.question))

    def teacher(self, problem: Problem, solution: str, privilege: float = 1.0) -> list[int]:
        """The prompt of the question with privileged context: (x, c).

        Args:
            problem: The problem with the question.
            solution: A verified solution.
            privilege: Fraction of the solution that is revealed, in [0, 1].
        """
        revealed = self.prompts.truncate_solution(solution, privilege)
        return self._ids(self.prompts.teacher(problem.question, revealed))

    def response(self, solution: str) -> list[int]:
        """A solution as the response that would have produced it, end of sequence included."""
        return [*self._ids(solution), self.end_ids[0]]

    def text(self, ids: Sequence[int]) -> str:
        """A response as text, without special tokens."""
        return self.tokenizer.decode(list(ids), skip_special_tokens=True)

    def _ids(self, text: str) -> list[int]:
        return self.tokenizer(text, add_special_tokens=False).input_ids
