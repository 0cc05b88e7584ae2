"""The search world."""

from __future__ import annotations

import random

from geosd.problems.problem_splits import GeneratedProblem
from geosd.problems.search.equations import (
    IN_DISTRIBUTION,
    OUT_OF_DISTRIBUTION,
    Benchmark,
    draw_question,
)
from geosd.problems.sources.data_source import register
from geosd.problems.sources.miniature_source import LIMITS, MiniatureSource


@register("search")
class Search(MiniatureSource):
    """Data source of the search world, two equations in one unknown modulo 16; docs/search.md."""

    limits = LIMITS.format(world="search", questions="two equations in one unknown modulo 16")
    world = "search"
    in_distribution = IN_DISTRIBUTION
    out_of_distribution = OUT_OF_DISTRIBUTION

    def draw(self, benchmark: Benchmark, rng: random.Random) -> GeneratedProblem:
        """Draw two equations and the x that solves both."""
        question = draw_question(benchmark, rng)
        return GeneratedProblem(str(question), str(question.answer()))
