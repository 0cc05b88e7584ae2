"""What the data sources of both miniature worlds share: prompts, grader, and held-out problems."""

from __future__ import annotations

import random
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from geosd.problems.grading.miniature_grader import MiniatureGrader
from geosd.problems.held_out import is_held_out
from geosd.problems.miniature.prompts import MiniaturePrompts
from geosd.problems.problem_splits import (
    BenchmarkKind,
    GeneratedProblem,
    ProblemSplits,
    generate_splits,
)
from geosd.problems.sources.data_source import DataSource

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

LIMITS = (
    "A model of the {world} world ({questions}). It knows no language, and what it shows about a"
    " method is a result of that world, not evidence about language models."
)


class MiniatureSource(DataSource):
    """Data source of a miniature world: generated questions with integer answers.

    Attributes:
        world: Name of the world, the source of its random draws.
        in_distribution: Kind of the benchmark `id`, of the training and of the selection problems.
        out_of_distribution: Kinds of the other benchmarks.
    """

    world: ClassVar[str]
    in_distribution: ClassVar[BenchmarkKind]
    out_of_distribution: ClassVar[Sequence[BenchmarkKind]]

    @abstractmethod
    def draw(self, benchmark: Any, rng: random.Random) -> GeneratedProblem:
        """Draw one problem of a benchmark of the miniature world."""

    def prepare(self, settings: Mapping[str, Any]) -> ProblemSplits:
        """Splits of the world's held-out questions, every one drawn from the seed."""
        return generate_splits(
            self._draw_held_out,
            self.in_distribution,
            self.out_of_distribution,
            settings,
            self.world,
        )

    def _draw_held_out(self, benchmark: BenchmarkKind, rng: random.Random) -> GeneratedProblem:
        while not is_held_out((problem := self.draw(benchmark, rng)).question):
            pass
        return problem

    def prompts(self, tokenizer: PreTrainedTokenizerBase, thinking: bool) -> MiniaturePrompts:
        """The miniature worlds' own prompts; their models have no chat template."""
        return MiniaturePrompts()

    def grader(self) -> MiniatureGrader:
        """Grader of the miniature worlds: integers, exactly."""
        return MiniatureGrader()
