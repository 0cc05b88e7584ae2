"""Which problems a step trains on, and which verified solution each teacher is shown."""

from __future__ import annotations

import random
from collections.abc import Sequence

from geosd.problems.records import PooledSolutions, Problem
from geosd.seeds import seed_of


class ProblemSampler:
    """Problems epoch by epoch, each epoch in an order of its own, without repeats inside it.

    An epoch need not be a whole number of steps: a step may hold the end of one and the beginning
    of the next. Every draw depends on the seed and the step alone, never on earlier draws.

    Args:
        problems: The training problems.
        pool: Their verified solutions; a problem without any is not trained on (paper, Setup).
        seed: The run's seed.

    Raises:
        ValueError: No problem has a verified solution.
    """

    def __init__(
        self, problems: Sequence[Problem], pool: Sequence[PooledSolutions], seed: int
    ) -> None:
        """Keep the problems that have a verified solution."""
        self.solutions = {row.problem_id: row.solutions for row in pool if row.solutions}
        self.problems = [problem for problem in problems if problem.id in self.solutions]
        self.seed = seed
        if not self.problems:
            raise ValueError(
                f"none of the {len(problems)} training problems has a verified solution in the"
                " pool.\nHint: draw more rollouts a problem (pool.rollouts), or train the base"
                " model longer."
            )

    def batch(self, step: int, size: int) -> list[Problem]:
        """The `size` problems of a step."""
        return [self._at(step * size + offset) for offset in range(size)]

    def solution(self, problem: Problem, step: int) -> str:
        """One of the problem's verified solutions, uniformly: c ~ C(. | x)."""
        solutions = self.solutions[problem.id]
        draw = random.Random(seed_of(self.seed, "solution", step, problem.id))
        return solutions[draw.randrange(len(solutions))]

    def _at(self, index: int) -> Problem:
        epoch, place = divmod(index, len(self.problems))
        order = list(range(len(self.problems)))
        random.Random(seed_of(self.seed, "order", epoch)).shuffle(order)
        return self.problems[order[place]]
