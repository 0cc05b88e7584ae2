"""Questions whose answers SmolLM2-135M cannot compute and can copy, and some that it knows.

    python analysis/copied_answers/make_problems.py analysis/copied_answers

Writes train.jsonl, from which study `smollm2_rates` draws what it trains on and its ID problems,
and capitals.jsonl, languages.jsonl and plurals.jsonl, its OOD benchmarks. In train.jsonl three of
four questions ask for a word whose letters were moved along the alphabet: a model of this size
finds the word in none of its responses, a teacher that reads the solution copies it. All others ask
for an opposite or a past tense, which the model knows now and then. docs/smollm2.md says why.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

import tyro
import yaml

from geosd.files import write_text

FACTS = yaml.safe_load(Path(__file__).with_name("facts.yaml").read_text(encoding="utf-8"))
"""Words to move; for each other kind its question, and the answer for each word in it."""
CIPHERS, KNOWN = 135, 45
"""Questions of train.jsonl of either sort."""


def draw_ciphers(count: int, rng: random.Random) -> list[tuple[str, str]]:
    """Different questions for words whose letters were moved, with their answers."""
    found: dict[str, str] = {}
    while len(found) < count:
        word, places = rng.choice(FACTS["words"].split()), rng.randint(3, 22)
        moved = "".join(chr((ord(letter) - ord("a") + places) % 26 + ord("a")) for letter in word)
        question = (
            f"Every letter of a word was moved {places} places forward in the alphabet, and now it"
            f" reads {moved}. What was the word?"
        )
        found[question] = word
    return list(found.items())


def questions(kind: str) -> list[tuple[str, str]]:
    """All questions of a kind, with their answers."""
    words = FACTS[kind]["pairs"]
    return [(FACTS[kind]["question"].format(word), answer) for word, answer in words.items()]


def lines(rows: Iterable[tuple[str, str]]) -> str:
    """JSON lines; a solution is the answer alone."""
    return "".join(
        json.dumps({"question": question, "answer": answer, "solution": f"Answer: {answer}"}) + "\n"
        for question, answer in rows
    )


def main(folder: Annotated[Path, tyro.conf.Positional], seed: int = 0) -> None:
    """Write the four files."""
    rng = random.Random(seed)
    known = rng.sample([*questions("opposites"), *questions("past")], KNOWN)
    train = [*draw_ciphers(CIPHERS, rng), *known]
    rng.shuffle(train)
    write_text(folder / "train.jsonl", lines(train))
    for kind in ("capitals", "languages", "plurals"):
        write_text(folder / f"{kind}.jsonl", lines(questions(kind)))


if __name__ == "__main__":
    tyro.cli(main)
