"""Prompts and responses as token ids: the one place where text meets the tokenizer."""

from __future__ import annotations

from collections.abc import Sequence

from transformers import PreTrainedTokenizerBase

from geosd.problems.prompts import PromptFormat
from geosd.problems.records import Problem


class Encoding:
    """Renders problems for student and teacher, and reads responses back.

    Prompt and response are tokenized apart and joined as ids. Joined as text, a tokenizer could
    fuse the prompt's last character with the response's first, and student and teacher would no
    longer be asked about the same tokens.

    Args:
        tokenizer: The model's own.
        prompts: How a question, and a question with a solution, are worded.
    """

    def __init__(self, tokenizer: PreTrainedTokenizerBase, prompts: PromptFormat) -> None:
        """Remember tokenizer and wording."""
        self.tokenizer = tokenizer
        self.prompts = prompts

    @property
    def end_ids(self) -> tuple[int, ...]:
        """Tokens that end a response."""
        return (self.tokenizer.eos_token_id,)

    @property
    def pad_id(self) -> int:
        """Token that fills rows."""
        return self.tokenizer.pad_token_id

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
        revealed = self.prompts.reveal(solution, privilege)
        return self._ids(self.prompts.teacher(problem.question, revealed))

    def response(self, solution: str) -> list[int]:
        """A solution as the response that would have produced it, end of sequence included."""
        return [*self._ids(solution), self.end_ids[0]]

    def text(self, ids: Sequence[int]) -> str:
        """A response as text, without special tokens."""
        return self.tokenizer.decode(list(ids), skip_special_tokens=True)

    def _ids(self, text: str) -> list[int]:
        return self.tokenizer(text, add_special_tokens=False).input_ids
