"""The miniature's prompts: a question for the student, and with a solution for the teacher."""

from __future__ import annotations

from geosd.problems.prompt_format import revealed_parts

STEP_END = ";"


class MiniaturePrompts:
    """The miniature's prompts: `Q: <question> S:` and `Q: <question> R: <solution> S:`."""

    def student(self, question: str) -> str:
        """The student's prompt in the miniature: the question alone.

        Example:
            >>> MiniaturePrompts().student("7 + 8")
            'Q: 7 + 8 S:'
        """
        return f"Q: {question} S:"

    def teacher(self, question: str, solution: str) -> str:
        """The teacher's prompt in the miniature: the question with a solution.

        Example:
            >>> MiniaturePrompts().teacher("7 + 8", "7 + 8 = 5 ; A: 5")
            'Q: 7 + 8 R: 7 + 8 = 5 ; A: 5 S:'
        """
        return " ".join(f"Q: {question} R: {solution} S:".split())

    def truncate_solution(self, solution: str, fraction: float) -> str:
        """The first steps of a miniature's solution for the teacher's prompt: see `revealed_parts`.

        Steps, separated by `;`, are the miniature's sentences (paper, privilege sweep); the final
        answer is the last.

        Example:
            >>> MiniaturePrompts().truncate_solution("7 + 8 = 5 ; 5 - 3 = 2 ; A: 2", 0.5)
            '7 + 8 = 5 ; 5 - 3 = 2'
        """
        steps = [step.strip() for step in solution.split(STEP_END)]
        return f" {STEP_END} ".join(steps[: revealed_parts(len(steps), fraction)])
