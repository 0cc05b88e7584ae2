"""Prompts and responses as token ids: the one place where text meets the tokenizer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from transformers import GenerationConfig, PreTrainedTokenizerBase

from geosd.problems.records import Problem


class PromptFormat(Protocol):
    """The wording of prompts, of the miniature or of a chat model."""

    def student(self, question: str) -> str:
        """The prompt that asks the question alone."""
        ...

    def teacher(self, question: str, solution: str) -> str:
        """The prompt that asks the same question and shows a solution.

        It must end as the student's does, so that the first token of the response stands in the
        same place in both.
        """
        ...

    def truncate_solution(self, solution: str, fraction: float) -> str:
        """The first `fraction` of a solution's steps: the privilege that the teacher is given."""
        ...


def stop_token_ids(generation: GenerationConfig | None) -> tuple[int, ...]:
    """The tokens at which a released model's generation_config.json says to stop.

    Qwen3 lists `<|im_end|>` and `<|endoftext|>`, Olmo 3 too: its template ends turns with the one
    and conversations with the other.
    """
    ends = generation.eos_token_id if generation is not None else None
    return () if ends is None else tuple(ends) if isinstance(ends, list | tuple) else (ends,)


class Encoding:
    """Renders problems for student and teacher, and reads responses back.

    Prompt and response are tokenized apart and joined as ids. Joined as text, a tokenizer could
    fuse the prompt's last character with the response's first, and student and teacher would no
    longer be asked about the same tokens.

    Special tokens that belong to a prompt are in its text: a chat template writes the beginning of
    sequence itself, and the tokenizer is told to add none, or there would be two.

    Args:
        tokenizer: The model's own.
        prompts: How a question, and a question with a solution, are worded.
        stops: Tokens at which the model's release says to stop, beside the tokenizer's end of
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
            problem: Whose question is asked.
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
