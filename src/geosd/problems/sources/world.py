"""The miniature world."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from transformers import PreTrainedTokenizerBase

from geosd.problems.grading.miniature_grader import MiniatureGrader
from geosd.problems.miniature.prompts import MiniaturePrompts
from geosd.problems.miniature.splits import draw_splits
from geosd.problems.problem_splits import ProblemSplits
from geosd.problems.sources.data_source import DataSource, register, split_sizes


@register("world")
class World(DataSource):
    """Chains of operations modulo 10; docs/world.md."""

    limits = (
        "A model of the miniature world (chains of operations modulo 10). It knows no language, and"
        " what it shows about a method is a result of that world, not evidence about language"
        " models."
    )

    def prepare(self, settings: Mapping[str, Any]) -> ProblemSplits:
        """Draw every problem from the seed."""
        drawn = draw_splits(**split_sizes(settings), seed=settings["seed"])
        kept = Counter(problem.benchmark for problem in (*drawn.train, *drawn.select, *drawn.test))
        card = {
            name: {
                "generated": drawn.generated[name],
                "duplicates_dropped": drawn.duplicates[name],
                "kept": kept[name],
            }
            for name in drawn.generated
        }
        return ProblemSplits(drawn.train, drawn.select, drawn.test, {"benchmarks": card})

    def prompts(self, tokenizer: PreTrainedTokenizerBase, thinking: bool) -> MiniaturePrompts:
        """The miniature's own markers; its models have no chat template."""
        return MiniaturePrompts()

    def grader(self) -> MiniatureGrader:
        """Integers, exactly."""
        return MiniatureGrader()
