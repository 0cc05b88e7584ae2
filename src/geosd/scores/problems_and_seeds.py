"""How far one run lies above another, with intervals over problems, and over problems and seeds.

The value of a method on a benchmark is a table, seeds by problems, of the share of samples that are
right (`shares.csv`). Two methods are paired in both: they have the same problems, and the run of a
seed meets them in the same order.

Two intervals answer two questions. That over problems keeps the seeds: what would other problems
give these trained students? That over problems and seeds draws both again, independently: what
would other students on other problems give?

Source: Owen 2007, "The pigeonhole bootstrap", Annals of Applied Statistics 1(2), 386-411. No
bootstrap of a crossed table is exact (McCullagh 2000); this one overestimates a mean's variance
a little where there are many rows and columns. A bootstrap knows no more seeds than it was given:
drawn from n, their variance comes out (n - 1)/n too small, and the interval has no tails for what
n seeds did not show. `tests/scores/test_problems_and_seeds.py` says how often it holds the truth.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from geosd.problems.fresh_benchmarks import in_ood_average
from geosd.problems.records import is_ood_record
from geosd.scores.tidy import select_tidy_rows

RESAMPLES = 10_000


@dataclass(frozen=True)
class ProblemsAndSeedsInterval:
    """A difference of two means, and the ends of its interval, in points."""

    difference: float
    low: float
    high: float


def shares_by_problem_and_seed(
    shares: pd.DataFrame, model: str, variant: str, outside: bool
) -> dict[str, pd.DataFrame]:
    """Benchmark -> the share of right samples of a method, a row for each seed, in ascending order.

    Columns are problems in the order of their names. `outside` chooses the benchmarks of
    the OOD average, or ID; fresh ones are in neither.
    """
    chosen = in_ood_average if outside else _is_inside
    rows = select_tidy_rows(shares, model=model, variant=variant)
    found = {}
    for benchmark, of_benchmark in rows.groupby("benchmark", sort=True):
        if chosen(str(benchmark)):
            found[str(benchmark)] = of_benchmark.pivot(
                index="seed", columns="problem_id", values="share"
            )
    return found


def _is_inside(benchmark: str) -> bool:
    return not is_ood_record(benchmark)


def gaps_by_problem_and_seed(
    a: Mapping[str, pd.DataFrame], b: Mapping[str, pd.DataFrame]
) -> list[np.ndarray]:
    """The differences a - b of each benchmark, seeds by problems.

    Raises:
        ValueError: The two have other benchmarks, problems or seeds.
    """
    gaps = []
    for benchmark in {**a, **b}:
        first, second = a.get(benchmark), b.get(benchmark)
        if first is None or second is None or not _same_places(first, second):
            raise ValueError(
                f"the two have other problems or seeds on {benchmark}.\n"
                "Hint: compare runs of one study."
            )
        gaps.append((first - second).to_numpy())
    return gaps


def _same_places(a: pd.DataFrame, b: pd.DataFrame) -> bool:
    return a.index.equals(b.index) and a.columns.equals(b.columns)


def of_independent_runs(gaps: Sequence[np.ndarray], draws: np.ndarray) -> list[np.ndarray]:
    """The differences of independent runs by problems: means over the seeds of each base model.

    Runs of one base model share it (`replicate_means` in `geosd.scores.statistics`); with a single
    base model the seeds themselves are independent.

    Args:
        gaps: Of each benchmark the differences, seeds by problems.
        draws: The draw of the base model that each seed starts from.
    """
    distinct = np.unique(draws)
    if len(distinct) < 2:
        return [*gaps]
    return [np.stack([of[draws == draw].mean(axis=0) for draw in distinct]) for of in gaps]


def over_problems(
    gaps: Sequence[np.ndarray], confidence: float = 0.95, seed: int = 0
) -> ProblemsAndSeedsInterval:
    """The mean over benchmarks, and its interval over problems.

    The problems of each benchmark are drawn again `RESAMPLES` times; a problem's value is its mean
    over seeds.

    Args:
        gaps: Of each benchmark the differences, seeds by problems, in shares.
        seed: Of the draws.
    """
    draw = np.random.default_rng(seed)
    means = []
    for of_benchmark in gaps:
        by_problem = of_benchmark.mean(axis=0)
        drawn = draw.integers(len(by_problem), size=(RESAMPLES, len(by_problem)))
        means.append(by_problem[drawn].mean(axis=1))
    return _interval(gaps, np.mean(means, axis=0), confidence)


def over_problems_and_seeds(
    gaps: Sequence[np.ndarray], confidence: float = 0.95, seed: int = 0
) -> ProblemsAndSeedsInterval:
    """The mean over benchmarks, and its interval over problems and seeds together.

    The seeds are drawn again, the same for all benchmarks, and the problems of each benchmark,
    independently of the seeds and of one another, `RESAMPLES` times. Arguments are those of
    `over_problems`. With a single seed the interval is over problems alone.

    Raises:
        ValueError: Benchmarks have unequal numbers of seeds.
    """
    numbers = {len(of_benchmark) for of_benchmark in gaps}
    if len(numbers) != 1:
        raise ValueError(
            f"benchmarks have {', '.join(map(str, sorted(numbers)))} seeds; expected as many of"
            " each.\nHint: the table of shares lacks runs; analyse the study again."
        )
    draw = np.random.default_rng(seed)
    seed_weights = _weights(draw, numbers.pop())
    means = []
    for of_benchmark in gaps:
        problem_weights = _weights(draw, of_benchmark.shape[1])
        of_problems = seed_weights @ of_benchmark
        means.append((of_problems * problem_weights).sum(axis=1))
    return _interval(gaps, np.mean(means, axis=0), confidence)


def _weights(draw: np.random.Generator, n: int) -> np.ndarray:
    """How often each of n was drawn in n draws, over n; a row for each resample."""
    return draw.multinomial(n, np.full(n, 1 / n), size=RESAMPLES) / n


def _interval(
    gaps: Sequence[np.ndarray], resampled: np.ndarray, confidence: float
) -> ProblemsAndSeedsInterval:
    """The middle of the resampled means that has the confidence, in points."""
    tail = (1 - confidence) / 2
    low, high = np.quantile(resampled, [tail, 1 - tail])
    mean = np.mean([of_benchmark.mean() for of_benchmark in gaps])
    return ProblemsAndSeedsInterval(100 * float(mean), 100 * float(low), 100 * float(high))


def by_seed(gaps: Sequence[np.ndarray]) -> list[float]:
    """The difference of each seed, the mean over benchmarks, in points."""
    means = np.mean([of_benchmark.mean(axis=1) for of_benchmark in gaps], axis=0)
    return [100 * float(of_seed) for of_seed in means]
