"""Arithmetic word problems for a small chat model: no hub, no contest."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any

from transformers import PreTrainedTokenizerBase

from geosd.problems.chat_prompts import ChatPrompts
from geosd.problems.grading.typed_grader import TypedGrader
from geosd.problems.problem_splits import ProblemSplits
from geosd.problems.records import Problem
from geosd.problems.sources.data_source import DataSource, register
from geosd.problems.word_problem_stories import (
    IN_DISTRIBUTION,
    OUT_OF_DISTRIBUTION,
    StoryKind,
    draw_story,
)
from geosd.seeds import seed_of

INSTRUCTION = "Write the calculation in one line, then a line that says Answer: and the number."
TRIES = 1000


@register("word-problems")
class WordProblems(DataSource):
    """Problems of `geosd.problems.word_problem_stories`, no question twice; docs/data.md."""

    limits = (
        "Trained for a few steps on generated word problems, to show that every part of the"
        " pipeline works on a real language model. It is evidence for nothing else."
    )

    def prepare(self, settings: Mapping[str, Any]) -> ProblemSplits:
        """Draw every problem from the seed, test problems first.

        Raises:
            ValueError: A kind has too few different questions for the number wanted, or the whole
                of a benchmark is asked for: a generated one has no end.
        """
        if settings["test_per_benchmark"] is None:
            raise ValueError(
                "data.test_per_benchmark is null, the whole benchmark; word problems are generated"
                " without end.\nHint: set a number."
            )
        seen: set[str] = set()
        solutions: dict[str, str] = {}
        counts: dict[str, dict[str, int]] = {}

        def drawn(name: str, kind: StoryKind, number: int) -> tuple[Problem, ...]:
            draw = random.Random(seed_of(settings["seed"], "stories", name))
            problems: list[Problem] = []
            tries = 0
            while len(problems) < number:
                if tries >= TRIES * number:
                    raise ValueError(
                        f"{name!r} gave {len(problems)} different questions in {tries} draws;"
                        f" {number} were wanted.\nHint: ask for fewer problems."
                    )
                tries += 1
                story = draw_story(kind, draw)
                if story.question not in seen:
                    seen.add(story.question)
                    id = f"{name}-{len(problems):05d}"
                    problems.append(Problem(id, name, story.question, str(story.answer)))
                    solutions[id] = story.solution
            counts[name] = {"generated": tries, "duplicates_dropped": tries - number}
            counts[name]["kept"] = number
            return tuple(problems)

        each = settings["test_per_benchmark"]
        test = drawn("id", IN_DISTRIBUTION, settings["test_id"])
        for kind in OUT_OF_DISTRIBUTION:
            test += drawn(kind.name, kind, each)
        select = drawn("select_train", IN_DISTRIBUTION, settings["select_train"])
        select += drawn("select_validation", IN_DISTRIBUTION, settings["select_validation"])
        train = drawn("train", IN_DISTRIBUTION, settings["train"])
        card = {"benchmarks": counts, "worked_solutions": solutions}
        return ProblemSplits(train, select, test, card)

    def prompts(self, tokenizer: PreTrainedTokenizerBase, thinking: bool) -> ChatPrompts:
        """The model's own chat template; answers are asked for on a line of their own."""
        return ChatPrompts(tokenizer, INSTRUCTION, thinking)

    def grader(self) -> TypedGrader:
        """Integers, exactly."""
        return TypedGrader()
