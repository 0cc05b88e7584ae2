"""DAPO-Math-17k, AIME 2024 and 2025, AMC 2023, MATH-500: the paper's problems."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from transformers import PreTrainedTokenizerBase

from geosd.problems.benchmark_graders import TypedGrader
from geosd.problems.chat import ChatPrompts
from geosd.problems.dapo.raw import read_raw
from geosd.problems.dapo.splits import prepare
from geosd.problems.prepared import Prepared
from geosd.problems.sources.source import Source, register, sizes

INSTRUCTION = r"Please reason step by step, and put your final answer within \boxed{}."


@register("dapo-math")
class DapoMath(Source):
    """The paper's problems; docs/data.md."""

    limits = (
        "Trained on a thousand competition problems in English for research on a training method;"
        " judged by final answers alone. Nothing else about it was measured: not its safety, and"
        " not what it lost elsewhere."
    )

    reads_raw = True

    def prepare(self, settings: Mapping[str, Any]) -> Prepared:
        """Read the raw files, clean them, and draw the splits."""
        if settings["raw"] is None:
            raise ValueError(
                "data.raw is null; problems of 'dapo-math' are read from a folder.\nHint:"
                " docs/data.md says which files it holds."
            )
        chosen = {"overlaps": settings["overlaps"], "seed": settings["seed"]}
        return prepare(read_raw(Path(settings["raw"])), **sizes(settings), **chosen)

    def prompts(self, tokenizer: PreTrainedTokenizerBase, thinking: bool) -> ChatPrompts:
        """The model's own chat template; answers are asked for in a box."""
        return ChatPrompts(tokenizer, INSTRUCTION, thinking)

    def grader(self) -> TypedGrader:
        """By the type of each gold answer."""
        return TypedGrader()
