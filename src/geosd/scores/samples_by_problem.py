"""Samples by benchmark and by problem, and the counts of each problem from which scores follow."""

from collections.abc import Iterable
from dataclasses import dataclass

from geosd.problems.records import SampleRecord


class UnevenSamplesError(ValueError):
    """Problems do not all have the same number of samples, so no accuracy can be computed."""


@dataclass(frozen=True)
class ProblemCounts:
    """Counts of one problem's samples, n, and of the correct ones, c."""

    benchmark: str
    problem_id: str
    n: int
    c: int


def group_by_problem(samples: Iterable[SampleRecord]) -> dict[tuple[str, str], list[SampleRecord]]:
    """Samples by (benchmark, problem_id), in the file's order, checked so that accuracy is fair.

    Raises:
        UnevenSamplesError: A sample number occurs twice, or problems have unequal numbers of
            samples: a mean over samples would weigh problems unequally.
    """
    problems: dict[tuple[str, str], list[SampleRecord]] = {}
    for sample in samples:
        problems.setdefault((sample.benchmark, sample.problem_id), []).append(sample)
    for (benchmark, problem_id), group in problems.items():
        if len({sample.sample for sample in group}) < len(group):
            raise UnevenSamplesError(
                f"problem {problem_id} of {benchmark}: a sample number occurs twice among"
                f" {len(group)} rows.\nHint: two sample files were joined; evaluate again."
            )
    sizes = {len(group): name for name, group in problems.items()}
    if len(sizes) > 1:
        numbers = "; ".join(f"{n} for {name[1]} of {name[0]}" for n, name in sorted(sizes.items()))
        raise UnevenSamplesError(
            f"problems have unequal numbers of samples: {numbers}. avg@k needs k for each.\n"
            "Hint: the sample file is incomplete; remove it and evaluate again."
        )
    return problems


def count_correct(samples: Iterable[SampleRecord]) -> list[ProblemCounts]:
    """Count the samples and the correct samples of each problem, in the file's order."""
    return [
        ProblemCounts(benchmark, problem_id, len(group), sum(sample.correct for sample in group))
        for (benchmark, problem_id), group in group_by_problem(samples).items()
    ]


def group_by_benchmark(samples: Iterable[SampleRecord]) -> dict[str, list[SampleRecord]]:
    """Group samples by benchmark to score them; samples and benchmarks keep their order."""
    benchmarks: dict[str, list[SampleRecord]] = {}
    for sample in samples:
        benchmarks.setdefault(sample.benchmark, []).append(sample)
    return benchmarks
