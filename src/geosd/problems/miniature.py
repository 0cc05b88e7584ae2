"""Parts of every world of the miniature: documents, prompts, a grader and a tokenizer."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from geosd.problems.grading import GradingVerdict
from geosd.problems.prompt_format import revealed_parts

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast

PAD, END, UNKNOWN = "<pad>", "<eos>", "<unk>"
SPECIAL = (PAD, END, UNKNOWN)
"""The first words of every vocabulary."""
STEP_END = ";"
HELD_OUT = 256 // 8

# Nothing is given back (`++`): a response of blanks or digits takes time linear in its length.
_FINAL = re.compile(r"A\s*+:\s*+(-?\s*+[0-9]++)(?!\S)")
_INTEGER = re.compile(r"\s*+(-?)\s*+(?=[0-9])0*+([0-9]*+)\s*+")


def is_held_out_of_miniature(question: str) -> bool:
    """Whether a question of a miniature world is kept for problems: one in eight, by its SHA-256.

    Data sources draw held-out questions alone, pretraining documents all others. So a base model
    has seen no problem of any study, whatever the study's seed and sizes.
    """
    return hashlib.sha256(question.encode()).digest()[0] < HELD_OUT


class MiniaturePrompts:
    """The miniature's prompts: `Q: <question> S:` and `Q: <question> R: <solution> S:`."""

    def student(self, question: str) -> str:
        """The question alone.

        Example:
            >>> MiniaturePrompts().student("* 6 + 3 = 5 , * 7 + 1 = 14")
            'Q: * 6 + 3 = 5 , * 7 + 1 = 14 S:'
        """
        return f"Q: {question} S:"

    def teacher(self, question: str, solution: str) -> str:
        """The question with a solution.

        Example:
            >>> MiniaturePrompts().teacher("* 6 + 3 = 5 , * 7 + 1 = 14", "11 2 5 ok A: 11")
            'Q: * 6 + 3 = 5 , * 7 + 1 = 14 R: 11 2 5 ok A: 11 S:'
        """
        return " ".join(f"Q: {question} R: {solution} S:".split())

    def revealed_solution(self, solution: str, fraction: float) -> str:
        """The first steps of a solution: see `revealed_parts`.

        Steps, separated by `;`, are the miniature's sentences (paper, privilege sweep); the final
        answer is in the last.

        Example:
            >>> MiniaturePrompts().revealed_solution("7 13 0 ; 3 2 5 ok 5 6 ; 11 2 5 ok A: 11", 0.5)
            '7 13 0 ; 3 2 5 ok 5 6'
        """
        steps = [step.strip() for step in solution.split(STEP_END)]
        return f" {STEP_END} ".join(steps[: revealed_parts(len(steps), fraction)])


class MiniatureGrader:
    """Grader of the miniature's responses: their final integers are compared."""

    def __call__(self, response: str, gold: str) -> GradingVerdict:
        """Judge a response of the miniature by its final answer alone; its steps are not checked.

        The final answer is the integer after the last `A:`. A right answer counts whatever led to
        it, as for the paper's graders. `A: 06` and `A: 6` are the same answer.

        Raises:
            ValueError: The gold answer is not an integer.

        Example:
            >>> MiniatureGrader()("3 2 5 ok 5 6 ; 11 2 5 ok A: 11", "11")
            GradingVerdict(answer='11', correct=True, reason='correct')
            >>> MiniatureGrader()("3 2 5 ok 5 6 ; 11 2", "11").reason
            'no answer'
        """
        right = _shortest_form(gold)
        answers = _FINAL.findall(response)
        if not answers:
            return GradingVerdict(None, False, "no answer")
        answer = _shortest_form(answers[-1])
        return GradingVerdict(
            answer, answer == right, "correct" if answer == right else "wrong answer"
        )

    def close(self) -> None:
        """Close the miniature's grader, which has started nothing."""


def _shortest_form(text: str) -> str:
    """An integer in its shortest form; as text, for `int` reads no more than 4300 digits."""
    match = _INTEGER.fullmatch(text)
    if match is None:
        raise ValueError(
            f"the gold answer {text[:80]!r} is not an integer; allowed are integers such as '7' or"
            " '-12'.\nHint: the grader compares integers; another kind of answer needs another"
            " grader."
        )
    sign, digits = match.groups()
    return sign + digits if digits else "0"


def build_miniature_tokenizer(vocabulary: Sequence[str]) -> PreTrainedTokenizerFast:
    """The word-level tokenizer of the miniature, which is saved with every model of it.

    The first words of the vocabulary are `SPECIAL`. A word that is not in it becomes `<unk>`.

    Example:
        >>> tokenizer = build_miniature_tokenizer([*SPECIAL, "7", "+", "8"])
        >>> tokenizer.decode(tokenizer("7 + 8").input_ids)
        '7 + 8'
    """
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    places = {word: place for place, word in enumerate(vocabulary)}
    words = Tokenizer(models.WordLevel(places, unk_token=UNKNOWN))
    words.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    return PreTrainedTokenizerFast(
        tokenizer_object=words,
        pad_token=PAD,
        eos_token=END,
        unk_token=UNKNOWN,
        padding_side="left",
        clean_up_tokenization_spaces=False,
    )
