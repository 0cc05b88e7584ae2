"""Problems whose answers SmolLM2-135M cannot compute and can copy, beside word problems.

    python analysis/copied_answers/make_problems.py analysis/copied_answers

Writes train.jsonl, from which study `smollm2_rates` draws what it trains on and its ID problems,
and large.jsonl, times.jsonl and scenes.jsonl, its OOD benchmarks. In train.jsonl three of four
problems give a word whose letters were moved along the alphabet: a model of this size finds the
word in none of its responses, a teacher that reads the solution copies it. All others are the word
problems of the source `word-problems`, which the model solves now and then. docs/smollm2.md says
why.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Annotated

import tyro

from geosd.files import write_text
from geosd.problems.problem_splits import GeneratedProblem
from geosd.problems.sources.word_problems import (
    IN_DISTRIBUTION,
    OUT_OF_DISTRIBUTION,
    StoryKind,
    draw_story,
)

WORDS = (
    "window garden table river mountain orange yellow doctor teacher summer winter bread butter"
    " cheese apple lemon horse sheep tiger rabbit engine rocket planet silver copper iron paper"
    " pencil mirror candle bottle basket blanket pillow jacket button ladder hammer market castle"
    " bridge tower island forest desert valley ocean harbor ship train wagon bicycle guitar piano"
    " drum flute violin king queen prince knight soldier farmer baker painter writer dancer singer"
    " captain pilot sailor brother sister cousin uncle mother father kitchen attic roof floor"
    " ceiling corner street village city country morning evening night spring cloud thunder snow"
    " wind storm sugar pepper honey coffee water glass plate spoon fork knife chair"
).split()
CIPHERS_OF_FOUR = 3
TRAIN, BENCHMARK = 180, 30
"""Problems of train.jsonl, and of each benchmark."""


def draw_cipher(rng: random.Random) -> GeneratedProblem:
    """A word whose letters were moved; its solution is the answer alone."""
    word, places = rng.choice(WORDS), rng.randint(3, 22)
    moved = "".join(chr((ord(letter) - ord("a") + places) % 26 + ord("a")) for letter in word)
    question = (
        f"Every letter of a word was moved {places} places forward in the alphabet, and now it"
        f" reads {moved}. What was the word?"
    )
    return GeneratedProblem(question, word, f"Answer: {word}")


def draw_answered(kind: StoryKind, rng: random.Random) -> GeneratedProblem:
    """A word problem; its solution is the answer alone."""
    problem = draw_story(kind, rng)
    return replace(problem, solution=f"Answer: {problem.answer}")


def lines(count: int, drawn: Callable[[int], GeneratedProblem]) -> str:
    """Different problems as JSON lines."""
    found: dict[str, GeneratedProblem] = {}
    while len(found) < count:
        problem = drawn(len(found))
        found.setdefault(problem.question, problem)
    return "".join(json.dumps(asdict(problem)) + "\n" for problem in found.values())


def main(folder: Annotated[Path, tyro.conf.Positional], seed: int = 0) -> None:
    """Write the four files."""
    rng = random.Random(seed)

    def mixed(number: int) -> GeneratedProblem:
        cipher = number % 4 < CIPHERS_OF_FOUR
        return draw_cipher(rng) if cipher else draw_answered(IN_DISTRIBUTION, rng)

    write_text(folder / "train.jsonl", lines(TRAIN, mixed))
    for kind in OUT_OF_DISTRIBUTION:
        of_kind = lines(BENCHMARK, lambda _, kind=kind: draw_answered(kind, rng))
        write_text(folder / f"{kind.name}.jsonl", of_kind)


if __name__ == "__main__":
    tyro.cli(main)
