"""The miniature's grader: whether a response's final integer is right."""

from __future__ import annotations

import re

from geosd.problems.grading import Verdict

# Nothing is given back (`++`): a response of blanks or digits takes time linear in its length.
_FINAL = re.compile(r"A\s*+:\s*+(-?\s*+[0-9]++)(?!\S)")
_INTEGER = re.compile(r"\s*+(-?)\s*+0*+([0-9]*+)\s*+")


class MiniatureGrader:
    """Grader of the miniature's responses: their final integers are compared."""

    def __call__(self, response: str, gold: str) -> Verdict:
        """Judge a response of the miniature by its final answer alone; its steps are not checked.

        The final answer is the integer after the last `A:`. As for the paper's graders, a right
        answer counts whatever led to it: a solution with two errors that cancel is a verified
        solution. `A: 06` and `A: 6` are the same answer.

        Raises:
            ValueError: The gold answer is not an integer.

        Example:
            >>> MiniatureGrader()("3 2 5 ok 5 6 ; 11 2 5 ok A: 11", "11")
            Verdict(answer='11', correct=True, reason='correct')
            >>> MiniatureGrader()("3 2 5 ok 5 6 ; 11 2", "11").reason
            'no answer'
        """
        right = _shortest_form(gold)
        answers = _FINAL.findall(response)
        if not answers:
            return Verdict(None, False, "no answer")
        answer = _shortest_form(answers[-1])
        return Verdict(answer, answer == right, "correct" if answer == right else "wrong answer")

    def close(self) -> None:
        """Close the miniature's grader, which has started nothing."""


def _shortest_form(text: str) -> str:
    """An integer in its shortest form; as text, for `int` reads no more than 4300 digits."""
    match = _INTEGER.fullmatch(text)
    if match is None or not any(map(str.isdigit, text)):
        raise ValueError(
            f"the gold answer {text[:80]!r} is not an integer; allowed are integers such as '7' or"
            " '-12'.\nHint: the grader compares integers; another kind of answer needs another"
            " grader."
        )
    sign, digits = match.groups()
    return sign + digits if digits else "0"
