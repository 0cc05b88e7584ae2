"""The chains world."""

from __future__ import annotations

import random

from geosd.problems.chains.questions import (
    IN_DISTRIBUTION,
    OUT_OF_DISTRIBUTION,
    Benchmark,
    draw_question,
    evaluate,
)
from geosd.problems.problem_splits import GeneratedProblem
from geosd.problems.sources.data_source import register
from geosd.problems.sources.miniature_source import LIMITS, MiniatureSource


@register("chains")
class Chains(MiniatureSource):
    """Data source of the chains world, chains of operations modulo 10; docs/chains.md."""

    limits = LIMITS.format(world="chains", questions="chains of operations modulo 10")
    world = "chains"
    in_distribution = IN_DISTRIBUTION
    out_of_distribution = OUT_OF_DISTRIBUTION

    def draw(self, benchmark: Benchmark, rng: random.Random) -> GeneratedProblem:
        """Draw a chain of operations and its value."""
        question = draw_question(benchmark, rng)
        return GeneratedProblem(question, str(evaluate(question)))
