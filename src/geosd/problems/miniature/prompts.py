"""The miniature's prompts: a question for the student, and with a solution for the teacher."""

from __future__ import annotations

import math

STEP_END = ";"


class MiniaturePrompts:
    """The miniature's prompts: `Q: <question> S:` and `Q: <question> R: <solution> S:`."""

    def student(self, question: str) -> str:
        """The prompt that asks the question alone.

        Example:
            >>> MiniaturePrompts().student("7 + 8")
            'Q: 7 + 8 S:'
        """
        return f"Q: {question} S:"

    def teacher(self, question: str, solution: str) -> str:
        """The prompt that also shows a solution, or the first part of one.

        Example:
            >>> MiniaturePrompts().teacher("7 + 8", "7 + 8 = 5 ; A: 5")
            'Q: 7 + 8 R: 7 + 8 = 5 ; A: 5 S:'
        """
        return " ".join(f"Q: {question} R: {solution} S:".split())

    def truncate_solution(self, solution: str, fraction: float) -> str:
        """The first steps of a solution; the final answer counts as its last step.

        Steps are the miniature's sentences (paper, privilege sweep). Their number is rounded up:
        any positive fraction reveals a step, and only 1 reveals the answer.

        Args:
            solution: Steps that are separated by `;`.
            fraction: How much is revealed, in [0, 1].

        Returns:
            The revealed steps; the empty string for 0.

        Raises:
            ValueError: The fraction is outside [0, 1].

        Example:
            >>> MiniaturePrompts().truncate_solution("7 + 8 = 5 ; 5 - 3 = 2 ; A: 2", 0.5)
            '7 + 8 = 5 ; 5 - 3 = 2'
        """
        if not 0 <= fraction <= 1:
            raise ValueError(
                f"privilege is {fraction}; allowed are fractions in [0, 1].\nHint: 1 shows the"
                " teacher the whole solution, 0.25 its first quarter."
            )
        steps = [step.strip() for step in solution.split(STEP_END)]
        # The small term undoes products such as 0.2 * 15 = 3.0000000000000004.
        shown = math.ceil(fraction * len(steps) - 1e-9)
        if fraction < 1:
            shown = min(shown, len(steps) - 1)
        return f" {STEP_END} ".join(steps[:shown])
