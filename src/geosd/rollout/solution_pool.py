"""The pool of verified solutions, sampled once from the base model: the teacher's privilege."""

from __future__ import annotations

from collections.abc import Sequence

from geosd.problems.encoding import Encoding
from geosd.problems.grading import UNDECIDED, Grader
from geosd.problems.records import PooledSolutions, Problem
from geosd.rollout.sampler import Sampler, SamplingParams


def pool_solutions(
    problems: Sequence[Problem],
    sampler: Sampler,
    encoding: Encoding,
    grade: Grader,
    rollouts: int,
    keep: int,
    sampling: SamplingParams,
    seed: int,
) -> list[PooledSolutions]:
    """Sample every problem, and keep distinct solutions whose answer is right.

    A truncated rollout is no solution, whatever it says: as privileged context it would teach the
    teacher to stop anywhere.

    Args:
        problems: The training problems.
        sampler: Samples pi_0.
        encoding: Text to ids and back.
        grade: Judges a response.
        rollouts: Rollouts a problem (paper, Data: up to 32).
        keep: Most solutions kept of a problem, the first drawn (paper, Data: 10).
        sampling: Temperature 1 in the paper.
        seed: Of the pool; it is shared by all runs of a model.

    Returns:
        One row per problem, in order, also for those without a solution: the exclusions are counted
        from it.
    """
    prompts = [encoding.student(problem) for problem in problems for _ in range(rollouts)]
    completions = sampler.sample(prompts, sampling, seed)
    rows = []
    for place, problem in enumerate(problems):
        drawn = completions[place * rollouts : (place + 1) * rollouts]
        texts = [encoding.text(one.ids) for one in drawn if one.finish == "stop"]
        verdicts = [grade(text, problem.answer) for text in texts]
        verified = [t for t, verdict in zip(texts, verdicts, strict=True) if verdict.correct]
        undecided = sum(verdict.reason in UNDECIDED for verdict in verdicts)
        distinct = tuple(dict.fromkeys(verified))[:keep]
        rows.append(PooledSolutions(problem.id, distinct, rollouts, len(verified), undecided))
    return rows


def count_pool(rows: Sequence[PooledSolutions]) -> dict[str, int]:
    """What the pool holds, and what it leaves out."""
    return {
        "problems": len(rows),
        "problems_without_solution_excluded": sum(not row.solutions for row in rows),
        "problems_trained_on": sum(bool(row.solutions) for row in rows),
        "rollouts_drawn": sum(row.drawn for row in rows),
        "rollouts_verified": sum(row.verified for row in rows),
        "rollouts_undecided": sum(row.undecided for row in rows),
        "distinct_solutions_kept": sum(len(row.solutions) for row in rows),
    }
