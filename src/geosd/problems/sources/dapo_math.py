"""DAPO-Math-17k, AIME 2024 and 2025, AMC 2023, MATH-500: the paper's problems."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from geosd.problems.chat_prompts import ChatPrompts
from geosd.problems.dapo.raw_files import read_raw_files
from geosd.problems.dapo.splits import clean_and_split
from geosd.problems.grading.typed_grader import TypedGrader
from geosd.problems.problem_splits import ProblemSplits
from geosd.problems.sources import DataSource, register

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

INSTRUCTION = r"Please reason step by step, and put your final answer within \boxed{}."


@register("dapo-math")
class DapoMath(DataSource):
    """Data source of the paper's problems, DAPO-Math and four benchmarks; docs/problems.md."""

    limits = (
        "Trained on a thousand competition problems in English for research on a training method;"
        " judged by final answers alone. Nothing else about it was measured: not its safety, and"
        " not what it lost elsewhere."
    )

    reads_raw = True

    most_problems = 13_790
    """Distinct texts of the English rows, docs/problems.md."""

    most_per_benchmark = 30
    """Each AIME."""

    def prepare(self, settings: Mapping[str, Any]) -> ProblemSplits:
        """Read the raw files, clean, split."""
        return clean_and_split(read_raw_files(Path(settings["raw"])), settings)

    def prompts(self, tokenizer: PreTrainedTokenizerBase, thinking: bool) -> ChatPrompts:
        """Prompts by the model's chat template, which ask for a box."""
        return ChatPrompts(tokenizer, INSTRUCTION, thinking)

    def grader(self) -> TypedGrader:
        """Numbers and expressions, by the type of the right answer."""
        return TypedGrader()
