"""Samples of a checkpoint on test problems, each kept with its text and verdict."""

from __future__ import annotations

from collections.abc import Sequence

from geosd.problems.records import Problem, Sample, is_out_of_distribution
from geosd.sampling.graded_sampler import Draw, GradedSampler
from geosd.sampling.sampler import SamplingParams
from geosd.seeds import seed_of


def evaluate(
    sampler: GradedSampler,
    problems: Sequence[Problem],
    samples: int,
    coverage: int,
    decoding: SamplingParams,
    seed: int,
) -> list[Sample]:
    """Sample a checkpoint on test problems and grade each sample.

    The student's prompt is used: a checkpoint is examined without privileged context. Each
    benchmark is a batch with a seed of its own, so adding a benchmark, or reordering them, leaves
    the others' samples as they were. The sampler gets all batches at once.

    Args:
        sampler: What draws and grades; it splits one seed into those of single completions.
        problems: In any order.
        samples: Samples of each problem, the k of avg@k; 16 in the paper.
        coverage: Samples of an OOD problem, 32 in the paper, where pass@k goes beyond `samples`.
            Those beyond are drawn apart, so the first `samples` are the same with and without them.
        decoding: Temperature, nucleus and cap.
        seed: The run's.

    Returns:
        Rows in the problems' order, the samples of a problem together, numbered from 0. The same
        arguments give the same rows.

    Raises:
        PreemptionError: The scheduler sent SIGTERM; what has ended is kept.
        ValueError: `samples` is below 1, there are no problems, or two share benchmark and id.

    Source:
        The paper, Evaluation: avg@16, temperature .6, top-p .95, 8,192 tokens.
    """
    if samples < 1:
        raise ValueError(f"samples = {samples}.\nHint: evaluation.samples must be at least 1.")
    if not problems:
        raise ValueError("No problems to evaluate on.\nHint: is the test file empty?")
    benchmarks: dict[str, dict[str, Problem]] = {}
    for problem in problems:
        if problem.id in benchmarks.setdefault(problem.benchmark, {}):
            raise ValueError(
                f"problem id {problem.id} occurs twice in {problem.benchmark}.\n"
                "Hint: ids must be unique within a benchmark; make the data again."
            )
        benchmarks[problem.benchmark][problem.id] = problem
    draws: list[Draw] = []
    for benchmark, members in benchmarks.items():
        calls = {"evaluate": range(samples)}
        if is_out_of_distribution(benchmark) and coverage > samples:
            calls["coverage"] = range(samples, coverage)
        draws += [
            Draw(list(members.values()), numbers, seed_of(seed, purpose, benchmark))
            for purpose, numbers in calls.items()
        ]
    rows: dict[tuple[str, str], list[Sample]] = {}
    for row in sampler.draw(draws, decoding):
        rows.setdefault((row.benchmark, row.problem_id), []).append(row)
    return [row for problem in problems for row in rows[problem.benchmark, problem.id]]
