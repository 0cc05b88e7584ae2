"""The splits of a study: disjoint by question, counted as they are drawn."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass

from geosd.problems.miniature.chains import (
    IN_DISTRIBUTION,
    OUT_OF_DISTRIBUTION,
    Benchmark,
    draw_question,
    evaluate,
)
from geosd.problems.records import Problem
from geosd.seeds import seed_of

TRIES = 1000


@dataclass(frozen=True)
class Splits:
    """The problems of a study.

    Attributes:
        train: Problems to train on, benchmark `train`, drawn as the in-distribution benchmark is.
        select: Problems to choose hyperparameters with, benchmarks `select_train` and
            `select_validation`, drawn as the in-distribution benchmark is.
        test: The in-distribution benchmark, then the others.
        generated: Questions that were drawn for each benchmark.
        duplicates: Of these, how many were dropped because an earlier problem asks the same.
    """

    train: tuple[Problem, ...]
    select: tuple[Problem, ...]
    test: tuple[Problem, ...]
    generated: Mapping[str, int]
    duplicates: Mapping[str, int]


def draw_splits(
    *,
    train: int,
    select_train: int,
    select_validation: int,
    test_id: int,
    test_per_benchmark: int,
    seed: int,
) -> Splits:
    """Draw every problem of a study, no question twice.

    Test problems are drawn first, so a larger training set never changes the test sets.

    Args:
        train: Number of training problems.
        select_train: Number of problems that hyperparameter candidates are trained on.
        select_validation: Number of problems that choose among them.
        test_id: Number of problems of the in-distribution benchmark.
        test_per_benchmark: Number of problems of each out-of-distribution benchmark.
        seed: Of all draws.

    Raises:
        ValueError: A benchmark has too few different questions for the number wanted.
    """
    seen: set[str] = set()
    generated: dict[str, int] = {}
    duplicates: dict[str, int] = {}

    def drawn(name: str, kind: Benchmark, number: int) -> list[Problem]:
        draw = random.Random(seed_of(seed, "problems", name))
        problems: list[Problem] = []
        tries = 0
        while len(problems) < number:
            if tries >= TRIES * number:
                raise ValueError(
                    f"benchmark {name!r} gave {len(problems)} different questions in {tries}"
                    f" draws; {number} were wanted.\nHint: ask for fewer problems."
                )
            tries += 1
            question = draw_question(kind, draw)
            if question not in seen:
                seen.add(question)
                place = len(problems)
                answer = str(evaluate(question))
                problems.append(Problem(f"{name}-{place:05d}", name, question, answer))
        generated[name] = tries
        duplicates[name] = tries - number
        return problems

    test = drawn(IN_DISTRIBUTION.name, IN_DISTRIBUTION, test_id)
    for kind in OUT_OF_DISTRIBUTION:
        test += drawn(kind.name, kind, test_per_benchmark)
    select = [
        *drawn("select_train", IN_DISTRIBUTION, select_train),
        *drawn("select_validation", IN_DISTRIBUTION, select_validation),
    ]
    training = drawn("train", IN_DISTRIBUTION, train)
    return Splits(tuple(training), tuple(select), tuple(test), generated, duplicates)
