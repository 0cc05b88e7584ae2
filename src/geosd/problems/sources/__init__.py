"""Data sets: one module each, registered by a name, which a study gives as `data.source`.

A data set has its problems, the words that put them to a model, and how an answer is judged.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from geosd.problems.grading import Grader
from geosd.problems.problem_splits import ProblemSplits
from geosd.problems.prompt_format import PromptFormat
from geosd.registry import Registry

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase


class DataSource(ABC):
    """Interface of a data source: all that differs between data sets; `limits`: for model cards."""

    limits: ClassVar[str]

    reads_raw: ClassVar[bool] = False
    """Whether its problems come from the files in `data.raw`."""

    most_problems: ClassVar[int | None] = None
    """Problems in distribution that there are, of which all splits but the benchmarks are drawn;
    None where files say so."""

    most_per_benchmark: ClassVar[int | None] = None
    """Problems of the smallest published benchmark; None where files say so, or none ends."""

    by_template: ClassVar[bool] = True
    """Whether prompts are worded by a model's chat template."""

    def remarks(self, settings: Mapping[str, Any]) -> list[str]:
        """Notes on the files before a run, though none of it is refused."""
        return []

    def benchmark_sizes(self, raw: str | None) -> Mapping[str, int] | None:
        """Problems of each benchmark in the files; None: those of the paper, or none is there."""
        return None

    @abstractmethod
    def prepare(self, settings: Mapping[str, Any]) -> ProblemSplits:
        """The splits of a study's problems, no question twice, by the plain values of `data`."""

    @abstractmethod
    def prompts(self, tokenizer: PreTrainedTokenizerBase, thinking: bool) -> PromptFormat:
        """How questions are worded; `thinking`: whether a chat model thinks before it answers."""

    @abstractmethod
    def grader(self) -> Grader:
        """A grader of the answers; the caller closes it."""


_registry: Registry[DataSource] = Registry("data source", "geosd.problems.sources")
register, names = _registry.register, _registry.names


def get_data_source(name: str) -> DataSource:
    """The data source that is registered under a name; a ValueError says which there are."""
    return _registry.get(name)()
