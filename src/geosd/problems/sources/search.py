"""The search world."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from geosd.problems.miniature import MiniatureGrader, MiniaturePrompts, is_held_out_of_miniature
from geosd.problems.problem_splits import ProblemSplits, SplitProblem, generate_splits
from geosd.problems.search.equations import (
    SEARCH,
    EquationBenchmark,
    EquationPair,
    EquationWorld,
    draw_equations,
)
from geosd.problems.sources import DataSource, register

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase


@register("search")
class Search(DataSource):
    """Data source of the search world, two equations in one unknown modulo 16; docs/search.md."""

    limits = (
        "A model of the search world (two equations in one unknown modulo 16). It knows no"
        " language, and what it shows about a method is a result of that world, not evidence about"
        " language models."
    )

    by_template = False
    most_problems = 57_579

    world: EquationWorld = SEARCH

    def prepare(self, settings: Mapping[str, Any]) -> ProblemSplits:
        """Splits of held-out questions, every one drawn from the seed."""
        inside = self.world.in_distribution(settings.get("conflict", 1.0))
        kinds = (inside, *self.world.outside)
        return generate_splits(self._draw_held_out, kinds, settings, "search")

    def prompts(self, tokenizer: PreTrainedTokenizerBase, thinking: bool) -> MiniaturePrompts:
        """Prompts of the miniature, whose models have no chat template."""
        return MiniaturePrompts()

    def grader(self) -> MiniatureGrader:
        """Integers, exactly."""
        return MiniatureGrader()

    def _draw_held_out(self, benchmark: EquationBenchmark, rng: random.Random) -> SplitProblem:
        """Draw two equations that are held out, and the x that solves both."""
        while not is_held_out_of_miniature(str(question := draw_equations(benchmark, rng))):
            pass
        worked = self._worked(question, rng)
        return SplitProblem(str(question), str(question.answer()), worked)

    def _worked(self, question: EquationPair, rng: random.Random) -> str | None:
        """A worked solution; this world needs none, for pi_0 solves most of its problems."""
        return None
