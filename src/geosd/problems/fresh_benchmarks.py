"""Fresh benchmarks: younger sets than the study's others, which no average and no test reads.

A study lists them in `data.fresh`, a text each: the benchmark's name, or `name@sha256` with the
SHA-256 of its file, where nothing else pins it. Problems, samples and scores call such a benchmark
`fresh-<name>`, so every later step knows it from the name alone.
"""

import re
from collections.abc import Sequence
from typing import NamedTuple

from geosd.problems.records import is_ood_record

FRESH = "fresh-"
"""Before the name of a fresh benchmark in problems, samples and scores."""
BY_FILE = "dapo-math"
"""The data source whose benchmarks are a fixed list, to which fresh ones are added by file."""
FRESH_TEXT = r"^[A-Za-z0-9][A-Za-z0-9_.-]*(@[0-9a-f]{64})?$"
"""Pattern of a text of `data.fresh`."""


class FreshBenchmark(NamedTuple):
    """A fresh benchmark as a study lists it: its name, and the SHA-256 of its file, or None."""

    name: str
    sha256: str | None = None

    @property
    def benchmark(self) -> str:
        """Its name in problems, samples and scores."""
        return FRESH + self.name


def fresh_benchmarks(texts: Sequence[str]) -> tuple[FreshBenchmark, ...]:
    """The fresh benchmarks that the texts of `data.fresh` list.

    Example:
        >>> fresh_benchmarks(["aime26"])[0].benchmark
        'fresh-aime26'

    Raises:
        ValueError: A text is none, or two name one benchmark.
    """
    found: dict[str, FreshBenchmark] = {}
    for text in texts:
        if not re.match(FRESH_TEXT, text):
            raise ValueError(
                f"{text!r} in data.fresh is no fresh benchmark; expected a name, or"
                " name@SHA-256 of its file.\nHint: for example aime26."
            )
        name, _, digest = text.partition("@")
        if name in found:
            raise ValueError(f"{name} stands twice in data.fresh.\nHint: keep one of the two.")
        found[name] = FreshBenchmark(name, digest or None)
    return tuple(found.values())


def is_fresh(benchmark: str) -> bool:
    """Whether the benchmark of a record or a score is a fresh one."""
    return benchmark.startswith(FRESH)


def in_ood_average(benchmark: str) -> bool:
    """Whether a benchmark counts in the OOD average: out of distribution, and not fresh."""
    return is_ood_record(benchmark) and not is_fresh(benchmark)


def shown_name(benchmark: str) -> str:
    """The name of a benchmark as tables show it: without the beginning of a fresh one's."""
    return benchmark.removeprefix(FRESH)
