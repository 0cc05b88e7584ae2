"""Samples of a checkpoint on test problems, each kept with its text and verdict."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain

from geosd.problems.encoding import Encoding
from geosd.problems.grading import Grader, judge_response
from geosd.problems.records import Problem, Sample, is_out_of_distribution
from geosd.sampling.sampler import (
    PromptBatch,
    Sampler,
    SamplingParams,
    named_problems,
)
from geosd.seeds import seed_of


def evaluate(
    sampler: Sampler,
    encoding: Encoding,
    grade: Grader,
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
        sampler: What draws; it splits one seed into those of single completions.
        encoding: The checkpoint's tokenizer, and how a question is worded.
        grade: Judges a whole response.
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
    batches: list[PromptBatch] = []
    places: list[tuple[Problem, int]] = []  # of each prompt: its problem, and the sample's number
    for benchmark, members in benchmarks.items():
        calls = {"evaluate": range(samples)}
        if is_out_of_distribution(benchmark) and coverage > samples:
            calls["coverage"] = range(samples, coverage)
        prompts = [encoding.student(problem) for problem in members.values()]
        for purpose, numbers in calls.items():
            ids = [prompt for prompt in prompts for _ in numbers]
            batches.append(PromptBatch(ids, seed_of(seed, purpose, benchmark)))
            places += [(problem, n) for problem in members.values() for n in numbers]
    with named_problems([problem for problem, _ in places]):
        completions = chain.from_iterable(sampler.sample_batches(batches, decoding))
    rows: dict[tuple[str, str], list[Sample]] = {}
    for (problem, number), completion in zip(places, completions, strict=True):
        text = encoding.text(completion.ids)
        verdict = judge_response(
            text,
            problem.answer,
            grade,
            truncated=completion.finish == "length",
            opened_thought=encoding.opens_thought,
        )
        row = Sample(
            benchmark=problem.benchmark,
            problem_id=problem.id,
            sample=number,
            text=text,
            tokens=len(completion.ids),
            answer=verdict.answer,
            correct=verdict.correct,
            finish=completion.finish,
            reason=verdict.reason,
        )
        rows.setdefault((problem.benchmark, problem.id), []).append(row)
    return [row for problem in problems for row in rows[problem.benchmark, problem.id]]
