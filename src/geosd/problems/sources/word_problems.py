"""Arithmetic word problems for a small chat model: no hub, no contest.

A problem is a scene with a number in it and one or more events that change the number. The answer
is computed from the numbers, and the worked solution writes every intermediate value, so a problem
is right by construction. docs/problems.md says which kinds there are.
"""

from __future__ import annotations

import operator
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from geosd.problems.chat_prompts import ChatPrompts
from geosd.problems.grading.typed_grader import TypedGrader
from geosd.problems.problem_splits import ProblemSplits, SplitProblem, generate_splits
from geosd.problems.sources import DataSource, register

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

INSTRUCTION = "Write the calculation in one line, then a line that says Answer: and the number."
# Of the wordings with which SmolLM2-135M ends as often as without, the best; docs/problems.md.
PRIVILEGED = """\
{question}
{instruction}
Reference solution:
{solution}"""
# Without examples SmolLM2-135M states no answer in four of five responses; docs/problems.md.
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


OPERATIONS = {"+": operator.add, "-": operator.sub, "*": operator.mul}
FACTORS = {2: "doubles", 3: "triples"}


@dataclass(frozen=True)
class Scene:
    """A scene of word problems: sentences with `{who}`, `{n}` and `{word}` to fill in.

    `opening` says the first number, `add` and `take` are ways to say that it grows or shrinks by n,
    `times` that it doubles or triples; `question` asks for the last number of `things`.
    """

    opening: str
    add: Sequence[str]
    take: Sequence[str]
    times: str
    question: str
    things: str


_FILE = Path(__file__).with_name("word_problem_stories.yaml")
_STORIES = yaml.safe_load(_FILE.read_text(encoding="utf-8"))
WHO: list[str] = _STORIES["who"]
FAMILIAR, UNFAMILIAR = (
    [Scene(**scene) for scene in _STORIES[kind]] for kind in ("familiar", "unfamiliar")
)


@dataclass(frozen=True)
class _StoryKind:
    """A kind of word problems: its benchmark's name, scenes, fewest and most events (`steps`).

    `numbers` are the smallest and largest number in the text, factors apart; `multiplied`: whether
    one of the events multiplies.
    """

    name: str
    scenes: Sequence[Scene]
    steps: tuple[int, int]
    numbers: tuple[int, int]
    multiplied: bool = False


# So hard that SmolLM2-135M, untrained, solves about a third: docs/problems.md.
IN_DISTRIBUTION = _StoryKind("id", FAMILIAR, (1, 1), (2, 9))
OUT_OF_DISTRIBUTION = (
    _StoryKind("large", FAMILIAR, (1, 1), (5, 12)),
    _StoryKind("times", FAMILIAR, (1, 1), (2, 9), multiplied=True),
    _StoryKind("scenes", UNFAMILIAR, (1, 1), (2, 5)),
)
KINDS = (IN_DISTRIBUTION, *OUT_OF_DISTRIBUTION)


def draw_story(kind: _StoryKind, rng: random.Random) -> SplitProblem:
    """Draw a word problem; an event takes less than there is, so that every value is positive."""
    scene, who = rng.choice(kind.scenes), rng.choice(WHO)
    low, high = kind.numbers
    value = rng.randint(low, high)
    steps = rng.randint(*kind.steps)
    multiplying = rng.randrange(steps) if kind.multiplied else None
    sentences = [scene.opening.format(who=who, n=value)]
    solution = [f"At first there are {value} {scene.things}."]
    for step in range(steps):
        if step == multiplying:
            sign, n = "*", rng.choice(list(FACTORS))
            sentences.append(scene.times.format(who=who, word=FACTORS[n]))
        elif value > low and rng.random() < 0.5:
            sign, n = "-", rng.randint(low, min(high, value - 1))
            sentences.append(rng.choice(scene.take).format(who=who, n=n))
        else:
            sign, n = "+", rng.randint(low, high)
            sentences.append(rng.choice(scene.add).format(who=who, n=n))
        before, value = value, OPERATIONS[sign](value, n)
        solution.append(f"Then {before} {sign} {n} = {value}.")
    sentences.append(scene.question.format(who=who))
    solution.append(f"Answer: {value}")
    return SplitProblem(" ".join(sentences), str(value), "\n".join(solution))


@register("word-problems")
class WordProblems(DataSource):
    """Data source of generated arithmetic word problems; docs/problems.md."""

    limits = (
        "Trained for a few steps on generated word problems, to show that every part of the"
        " pipeline works on a real language model. It is evidence for nothing else."
    )

    most_problems = 5_520

    def prepare(self, settings: Mapping[str, Any]) -> ProblemSplits:
        """Splits of word problems, every one drawn from the seed."""
        return generate_splits(draw_story, KINDS, settings, "stories")

    def prompts(self, tokenizer: PreTrainedTokenizerBase, thinking: bool) -> ChatPrompts:
        """Prompts by the model's chat template, behind two answered examples."""
        return ChatPrompts(tokenizer, INSTRUCTION, thinking, EXAMPLES, PRIVILEGED)

    def grader(self) -> TypedGrader:
        """Integers, exactly."""
        return TypedGrader()
