"""Graded samples of a checkpoint on the benchmarks: the test problems, ID and OOD."""

from collections.abc import Mapping, Sequence

from geosd.problems.records import Problem, SampleRecord, is_ood_record
from geosd.sampling.graded_sampler import GradedDraw, GradedSampler
from geosd.sampling.sampler import SamplingParams
from geosd.seeds import seed_of


def sample_benchmarks(
    sampler: GradedSampler,
    problems: Sequence[Problem],
    samples: int,
    coverage: int,
    decoding: SamplingParams,
    seed: int,
    allocation: Mapping[str, int] | None = None,
) -> list[SampleRecord]:
    """Sample a checkpoint on test problems and grade each sample.

    The student's prompt is used: a checkpoint is examined without privileged context. Each
    benchmark is a batch with a seed of its own, so adding a benchmark, or reordering them, leaves
    the others' samples as they were. The sampler gets all batches at once.

    Args:
        sampler: What draws and grades; it splits one seed into those of single completions.
        problems: In any order, each id once in a benchmark.
        samples: Samples of each problem, the k of avg@k; 16 in the paper.
        coverage: Samples of an OOD problem, 32 in the paper, where pass@k goes beyond `samples`.
            Those beyond are drawn apart, so the first `samples` are the same with and without them.
        decoding: Temperature, nucleus and cap.
        seed: The run's.
        allocation: Benchmark -> samples of each of its problems, in place of both numbers.

    Returns:
        Rows in the problems' order, the samples of a problem together, numbered from 0. The same
        arguments give the same rows.

    Raises:
        PreemptionError: The scheduler sent SIGTERM; what has ended is kept.

    Source:
        The paper, Evaluation: avg@16, temperature .6, top-p .95, 8,192 tokens.
    """
    benchmarks: dict[str, list[Problem]] = {}
    for problem in problems:
        benchmarks.setdefault(problem.benchmark, []).append(problem)
    draws: list[GradedDraw] = []
    for benchmark, members in benchmarks.items():
        own = (allocation or {}).get(benchmark)
        numbers = range(samples if own is None else own)
        draws.append(GradedDraw(members, numbers, seed_of(seed, "evaluate", benchmark)))
        if own is None and is_ood_record(benchmark) and coverage > samples:
            further = range(samples, coverage)
            draws.append(GradedDraw(members, further, seed_of(seed, "coverage", benchmark)))
    places = {(problem.benchmark, problem.id): place for place, problem in enumerate(problems)}
    rows = sampler.draw(draws, decoding)
    return sorted(rows, key=lambda row: (places[row.benchmark, row.problem_id], row.sample))
