"""The miniature world."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from transformers import PreTrainedTokenizerBase

from geosd.problems.miniature_grader import MiniatureGrader
from geosd.problems.prepared import Prepared
from geosd.problems.prompts import MiniaturePrompts
from geosd.problems.sources.source import Source, register, sizes
from geosd.problems.splits import draw_splits


@register("world")
class World(Source):
    """Chains of operations modulo 10; docs/world.md."""

    limits = (
        "A model of the miniature world (chains of operations modulo 10). It knows no language, and"
        " what it shows about a method is a result of that world, not evidence about language"
        " models."
    )

    def prepare(self, settings: Mapping[str, Any]) -> Prepared:
        """Draw every problem from the seed."""
        drawn = draw_splits(**sizes(settings), seed=settings["seed"])
        kept = Counter(problem.benchmark for problem in (*drawn.train, *drawn.select, *drawn.test))
        card = {
            name: {
                "generated": drawn.generated[name],
                "duplicates_dropped": drawn.duplicates[name],
                "kept": kept[name],
            }
            for name in drawn.generated
        }
        return Prepared(drawn.train, drawn.select, drawn.test, {"benchmarks": card})

    def prompts(self, tokenizer: PreTrainedTokenizerBase, thinking: bool) -> MiniaturePrompts:
        """The miniature's own markers; its models have no chat template."""
        return MiniaturePrompts()

    def grader(self) -> MiniatureGrader:
        """Integers, exactly."""
        return MiniatureGrader()
