"""The miniature's prompts: a question for the student, and with a solution for the teacher."""

from __future__ import annotations

from geosd.problems.encoding import revealed_parts

STEP_END = ";"


class MiniaturePrompts:
    """The miniature's prompts: `Q: <question> S:` and `Q: <question> R: <solution> S:`."""

    def student(self, question: str) -> str:
        """The student's prompt in the miniature: the question alone.

        Example:
            >>> MiniaturePrompts().student("* 6 + 3 = 5 , * 7 + 1 = 14")
            'Q: * 6 + 3 = 5 , * 7 + 1 = 14 S:'
        """
        return f"Q: {question} S:"

    def teacher(self, question: str, solution: str) -> str:
        """The teacher's prompt in the miniature: the question with a solution.

        Example:
            >>> MiniaturePrompts().teacher("* 6 + 3 = 5 , * 7 + 1 = 14", "11 2 5 ok A: 11")
            'Q: * 6 + 3 = 5 , * 7 + 1 = 14 R: 11 2 5 ok A: 11 S:'
        """
        return " ".join(f"Q: {question} R: {solution} S:".split())

    def truncate_solution(self, solution: str, fraction: float) -> str:
        """The first steps of a miniature's solution for the teacher's prompt: see `revealed_parts`.

        Steps, separated by `;`, are the miniature's sentences (paper, privilege sweep); the final
        answer is in the last.

        Example:
            >>> MiniaturePrompts().truncate_solution("7 13 0 ; 3 2 5 ok 5 6 ; 11 2 5 ok A: 11", 0.5)
            '7 13 0 ; 3 2 5 ok 5 6'
        """
        steps = [step.strip() for step in solution.split(STEP_END)]
        return f" {STEP_END} ".join(steps[: revealed_parts(len(steps), fraction)])
