"""How often a checkpoint is right: counts per problem, and their mean.

Notation: n = samples of a problem, c = those of them that are correct.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from geosd.problems.records import Sample


class UnevenSamplesError(ValueError):
    """A sample file in which problems do not all have the same samples."""


@dataclass(frozen=True)
class ProblemCounts:
    """The verdicts on one problem.

    Attributes:
        benchmark: Which benchmark the problem is of.
        problem_id: Which problem.
        n: Samples drawn.
        c: Samples that are correct.
    """

    benchmark: str
    problem_id: str
    n: int
    c: int


def group_by_problem(samples: Iterable[Sample]) -> dict[tuple[str, str], list[Sample]]:
    """Samples of each (benchmark, problem_id), problems and samples in the file's order.

    Raises:
        UnevenSamplesError: A sample number occurs twice, or problems have unequal numbers of
            samples.
            Either way the mean over samples would weigh problems unequally, silently.
    """
    problems: dict[tuple[str, str], list[Sample]] = {}
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


def count_correct(samples: Iterable[Sample]) -> list[ProblemCounts]:
    """Count samples and correct samples of each problem, in the file's order."""
    return [
        ProblemCounts(benchmark, problem_id, len(group), sum(sample.correct for sample in group))
        for (benchmark, problem_id), group in group_by_problem(samples).items()
    ]


def avg_at_k(counts: Sequence[ProblemCounts]) -> float:
    """Accuracy averaged over the k = n samples of a problem, then over problems: avg@k.

    Args:
        counts: The problems of one benchmark.

    Returns:
        mean over problems of c / n, in [0, 1].

    Raises:
        ValueError: There are no problems.

    Source:
        The paper, Training and evaluation: "average accuracy over k samples".
    """
    if not counts:
        raise ValueError("avg@k of no problems.\nHint: the benchmark's name matched no sample.")
    return sum(tally.c / tally.n for tally in counts) / len(counts)
