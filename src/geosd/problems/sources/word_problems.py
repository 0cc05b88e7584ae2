"""Arithmetic word problems for a small chat model: no hub, no contest."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from geosd.problems.chat_prompts import ChatPrompts
from geosd.problems.grading.typed_grader import TypedGrader
from geosd.problems.problem_splits import ProblemSplits, generate_splits
from geosd.problems.sources.data_source import DataSource, register
from geosd.problems.word_problem_stories import IN_DISTRIBUTION, OUT_OF_DISTRIBUTION, draw_story

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

INSTRUCTION = "Write the calculation in one line, then a line that says Answer: and the number."
# Of the wordings with which SmolLM2-135M ends as often as without, the best; docs/data.md.
PRIVILEGED = """\
{question}
{instruction}
Reference solution:
{solution}"""
# Without examples SmolLM2-135M states no answer in four of five responses; docs/data.md.
EXAMPLES = (
    (
        "Lena has 4 books. Lena buys 3 more books. How many books does Lena have now?",
        "4 + 3 = 7\nAnswer: 7",
    ),
    (
        "Omar has 9 coins. Omar loses 5 coins. How many coins does Omar have now?",
        "9 - 5 = 4\nAnswer: 4",
    ),
)


@register("word-problems")
class WordProblems(DataSource):
    """Data source of generated arithmetic word problems; docs/data.md."""

    limits = (
        "Trained for a few steps on generated word problems, to show that every part of the"
        " pipeline works on a real language model. It is evidence for nothing else."
    )

    def prepare(self, settings: Mapping[str, Any]) -> ProblemSplits:
        """Splits of word problems, every one drawn from the seed."""
        kinds = IN_DISTRIBUTION, OUT_OF_DISTRIBUTION
        return generate_splits(draw_story, *kinds, settings, "stories")

    def prompts(self, tokenizer: PreTrainedTokenizerBase, thinking: bool) -> ChatPrompts:
        """Prompts of word problems by the model's chat template, behind two answered examples."""
        return ChatPrompts(tokenizer, INSTRUCTION, thinking, EXAMPLES, PRIVILEGED)

    def grader(self) -> TypedGrader:
        """Grader of word problems: integers, exactly."""
        return TypedGrader()
