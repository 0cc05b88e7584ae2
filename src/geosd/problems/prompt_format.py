"""How a data set words its prompts, and how much of a solution a prompt reveals."""

import math
from collections.abc import Sequence
from typing import Protocol


class PromptFormat(Protocol):
    """Interface of a data set's prompt format, such as `MiniaturePrompts` or `ChatPrompts`.

    A format may leave out `turn_ends`, the tokens that end an answer besides those of tokenizer and
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
