"""Arithmetic word problems: scenes, what happens in them, and a worked solution of each.

A problem is a scene with a number in it and one or more events that change the number. The answer
is computed from the numbers, and the worked solution writes every intermediate value, so a problem
is right by construction. docs/data.md says which kinds there are.
"""

from __future__ import annotations

import operator
import random
from dataclasses import dataclass

from geosd.problems.problem_splits import GeneratedProblem

OPERATIONS = {"+": operator.add, "-": operator.sub, "*": operator.mul}
FACTORS = {2: "doubles", 3: "triples"}


@dataclass(frozen=True)
class Scene:
    """A scene of word problems: sentences with `{who}`, `{n}` and `{word}` to fill in.

    Attributes:
        opening: Says the first number.
        add: Ways to say that it grows by n.
        take: Ways to say that it shrinks by n.
        times: Says that it is multiplied; `{word}` is doubles or triples.
        question: Asks for the last number.
        things: What is counted.
    """

    opening: str
    add: tuple[str, ...]
    take: tuple[str, ...]
    times: str
    question: str
    things: str


WHO = ("Anna", "Ben", "Clara", "David", "Emma", "Felix", "Grace", "Henry", "Ida", "Jonas")
FAMILIAR = (
    Scene(
        "{who} has {n} apples.",
        ("{who} buys {n} more apples.", "{who} picks {n} apples from a tree."),
        ("{who} eats {n} apples.", "{who} gives {n} apples to a friend."),
        "Then {who} {word} the number of apples at the market.",
        "How many apples does {who} have now?",
        "apples",
    ),
    Scene(
        "{who} has {n} dollars.",
        ("{who} earns {n} dollars.", "{who} gets {n} dollars as a present."),
        ("{who} spends {n} dollars on a book.", "{who} pays {n} dollars for lunch."),
        "Then {who} {word} the money in a game.",
        "How many dollars does {who} have now?",
        "dollars",
    ),
    Scene(
        "{who} collects stamps and has {n} of them.",
        ("{who} finds {n} stamps on old letters.", "A neighbour gives {who} {n} stamps."),
        ("{who} loses {n} stamps.", "{who} trades {n} stamps away."),
        "Then {who} {word} the collection.",
        "How many stamps does {who} have now?",
        "stamps",
    ),
)
UNFAMILIAR = (
    Scene(
        "A bus leaves the station with {n} passengers, and {who} is the driver.",
        ("At a stop, {n} passengers get on.",),
        ("At a stop, {n} passengers get off.",),
        "At the market square the number of passengers {word}.",
        "How many passengers are on the bus now?",
        "passengers",
    ),
    Scene(
        "In the garden of {who} there are {n} birds.",
        ("Another {n} birds arrive.",),
        ("A cat appears, and {n} birds fly away.",),
        "In the evening the number of birds {word}.",
        "How many birds are in the garden now?",
        "birds",
    ),
    Scene(
        "The tank behind the house of {who} holds {n} litres of water.",
        ("Rain adds {n} litres.",),
        ("Watering the plants takes {n} litres.",),
        "A storm {word} the amount of water.",
        "How many litres does the tank hold now?",
        "litres",
    ),
)


@dataclass(frozen=True)
class StoryKind:
    """A kind of word problems: its scenes, how many events, how large numbers.

    Attributes:
        name: As it appears in problem files, tables and figures.
        scenes: Where it plays.
        steps: Fewest and most events.
        numbers: Smallest and largest number in the text, factors apart.
        multiplied: Whether one of the events multiplies.
    """

    name: str
    scenes: tuple[Scene, ...]
    steps: tuple[int, int]
    numbers: tuple[int, int]
    multiplied: bool = False


# So hard that SmolLM2-135M, untrained, solves about a third: docs/data.md.
IN_DISTRIBUTION = StoryKind("id", FAMILIAR, (1, 1), (2, 9))
OUT_OF_DISTRIBUTION = (
    StoryKind("large", FAMILIAR, (1, 1), (5, 12)),
    StoryKind("times", FAMILIAR, (1, 1), (2, 9), multiplied=True),
    StoryKind("scenes", UNFAMILIAR, (1, 1), (2, 5)),
)
KINDS = (IN_DISTRIBUTION, *OUT_OF_DISTRIBUTION)


def draw_story(kind: StoryKind, rng: random.Random) -> GeneratedProblem:
    """Draw a word problem, e.g. "Anna has 5 apples. Anna eats 2 apples. How many ...?".

    An event takes less than there is: every value is positive.
    """
    scene, who = rng.choice(kind.scenes), rng.choice(WHO)
    value = rng.randint(*kind.numbers)
    steps = rng.randint(*kind.steps)
    multiplying = rng.randrange(steps) if kind.multiplied else None
    sentences = [scene.opening.format(who=who, n=value)]
    solution = [f"At first there are {value} {scene.things}."]
    for step in range(steps):
        sign, n = _draw_event(kind, value, step == multiplying, rng)
        if sign == "*":
            sentences.append(scene.times.format(who=who, word=FACTORS[n]))
        else:
            sentence = rng.choice(scene.add if sign == "+" else scene.take)
            sentences.append(sentence.format(who=who, n=n))
        before, value = value, OPERATIONS[sign](value, n)
        solution.append(f"Then {before} {sign} {n} = {value}.")
    sentences.append(scene.question.format(who=who))
    solution.append(f"Answer: {value}")
    return GeneratedProblem(" ".join(sentences), str(value), "\n".join(solution))


def _draw_event(
    kind: StoryKind, value: int, multiplies: bool, rng: random.Random
) -> tuple[str, int]:
    """The sign of an operation and its number."""
    if multiplies:
        return "*", rng.choice(list(FACTORS))
    low, high = kind.numbers
    if value > low and rng.random() < 0.5:
        return "-", rng.randint(low, min(high, value - 1))
    return "+", rng.randint(low, high)
