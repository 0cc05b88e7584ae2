"""The splits of a study's problems, and how the splits of a generated data set are drawn."""

import json
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from geosd.files import DamagedFileError, remake_file_hint
from geosd.problems.records import Problem
from geosd.seeds import seed_of

FRUITLESS = 500
"""Draws in a row without a new question, after which a benchmark counts as exhausted.

Of the search world's 57,000 questions 52,700 are drawn by then, and the others are rare; among the
first 50,000 no more than 240 draws in a row were of known ones.
"""


@dataclass(frozen=True)
class ProblemSplits:
    """The splits of a study's problems, and a card of what was read or drawn, dropped and kept.

    Benchmarks are `train`; `select_train` and `select_validation`, to choose hyperparameters with;
    `id`, then those out of distribution.
    """

    train: tuple[Problem, ...]
    select: tuple[Problem, ...]
    test: tuple[Problem, ...]
    card: Mapping[str, Any]


@dataclass(frozen=True)
class SplitProblem:
    """A generated problem before it has a place in a split: question, answer, solution."""

    question: str
    answer: str
    solution: str | None = None


def generate_splits(
    draw_problem: Callable[[Any, random.Random], SplitProblem],
    kinds: Sequence[Any],
    settings: Mapping[str, Any],
    purpose: str,
) -> ProblemSplits:
    """Draw the splits of a generated data set, no question twice.

    Test problems are drawn first, so a larger training set never changes the test sets. The first
    kind is in distribution, as training and selection problems are; each has the `name` of its
    benchmark. Settings are those of `draw_splits`; `purpose` keeps the draws apart from those of
    other generators with the same seed. The card counts draws and holds the worked solutions.
    ValueError if a benchmark has too few questions.
    """
    seen: set[str] = set()
    counts: dict[str, dict[str, int]] = {}
    solutions: dict[str, str] = {}

    def draw_benchmark(name: str, kind: Any, number: int) -> tuple[Problem, ...]:
        rng = random.Random(seed_of(settings["seed"], purpose, name))
        problems: list[Problem] = []
        tries = fruitless = 0
        while len(problems) < number:
            if fruitless == FRUITLESS:
                raise ValueError(
                    f"benchmark {name!r} gave {len(problems)} different questions in {tries}"
                    f" draws, the last {FRUITLESS} none; {number} were wanted.\n"
                    "Hint: ask for fewer problems."
                )
            tries += 1
            fruitless += 1
            drawn = draw_problem(kind, rng)
            if drawn.question not in seen:
                fruitless = 0
                seen.add(drawn.question)
                problem_id = f"{name}-{len(problems):05d}"
                problems.append(Problem(problem_id, name, drawn.question, drawn.answer))
                if drawn.solution is not None:
                    solutions[problem_id] = drawn.solution
        counts[name] = {"generated": tries, "duplicates_dropped": tries - number, "kept": number}
        return tuple(problems)

    in_distribution, *out_of_distribution = kinds
    test = draw_benchmark(in_distribution.name, in_distribution, settings["test_id"])
    for kind in out_of_distribution:
        test += draw_benchmark(kind.name, kind, settings["test_per_benchmark"])
    select = draw_benchmark("select_train", in_distribution, settings["select_train"])
    select += draw_benchmark("select_validation", in_distribution, settings["select_validation"])
    training = draw_benchmark("train", in_distribution, settings["train"])
    card = {"benchmarks": counts} | ({"worked_solutions": solutions} if solutions else {})
    return ProblemSplits(training, select, test, card)


def read_split_solutions(card: Path) -> dict[str, str]:
    """The worked solutions in the card of a data set's splits, by problem id."""
    # A tenth of a second that programs without a card save.
    from pydantic import TypeAdapter, ValidationError

    try:
        found = json.loads(card.read_text(encoding="utf-8")).get("worked_solutions", {})
        return TypeAdapter(dict[str, str]).validate_python(found, strict=True)
    except (ValueError, AttributeError, ValidationError) as error:
        raise DamagedFileError(
            f"{card}: is no card of problems.\n{remake_file_hint(card)}"
        ) from error
