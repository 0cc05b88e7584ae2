"""The pool of verified solutions, sampled once from the base model: the teacher's privilege."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from geosd.problems.encoding import Encoding
from geosd.problems.grading import UNDECIDED, Grader, judge_response, reason_counts
from geosd.problems.records import PooledSolutions, Problem, Reason
from geosd.sampling.sampler import Sampler, SamplingParams, named_problems


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

    A truncated rollout is no solution: as privileged context it would teach the teacher to stop
    anywhere. The paper (Data) has up to 32 rollouts a problem, at temperature 1, and keeps 10
    solutions at most, here the first ones drawn.

    Returns:
        One row per problem, in order, also for those without a solution: the exclusions are counted
        from it.
    """
    asked = [problem for problem in problems for _ in range(rollouts)]
    with named_problems(asked):
        completions = sampler.sample([encoding.student(one) for one in asked], sampling, seed)
    rows = []
    for place, problem in enumerate(problems):
        drawn = completions[place * rollouts : (place + 1) * rollouts]
        texts = [encoding.text(one.ids) for one in drawn]
        verdicts = [
            judge_response(
                text,
                problem.answer,
                grade,
                truncated=one.finish == "length",
                opened_thought=encoding.opens_thought,
            )
            for text, one in zip(texts, drawn, strict=True)
        ]
        verified = [t for t, verdict in zip(texts, verdicts, strict=True) if verdict.correct]
        reasons = Counter(verdict.reason for verdict in verdicts)
        undecided = sum(reasons[reason] for reason in UNDECIDED)
        distinct = tuple(dict.fromkeys(verified))[:keep]
        rows.append(
            PooledSolutions(problem.id, distinct, rollouts, len(verified), undecided, dict(reasons))
        )
    return rows


def count_pool(rows: Sequence[PooledSolutions]) -> dict[str, Any]:
    """What the pool holds, and what it leaves out."""
    return {
        "problems": len(rows),
        "problems_without_solution_excluded": sum(not row.solutions for row in rows),
        "problems_trained_on": sum(bool(row.solutions) for row in rows),
        "rollouts_drawn": sum(row.drawn for row in rows),
        "rollouts_verified": sum(row.verified for row in rows),
        "rollouts_undecided": sum(row.undecided for row in rows),
        "rollouts_by_reason": dict(_reasons(rows)),
        "distinct_solutions_kept": sum(len(row.solutions) for row in rows),
    }


def pool_summary(rows: Sequence[PooledSolutions]) -> str:
    """How many problems have a verified solution, and how the rollouts were judged, in words."""
    trained, reasons = sum(bool(row.solutions) for row in rows), _reasons(rows)
    text = f"{trained} of the {len(rows)} training problems have a verified solution"
    text += "; training sees these alone."
    return f"{text}\n{reason_counts(reasons.elements(), 'rollouts')}" if reasons else text


def require_solutions(rows: Sequence[PooledSolutions], least_share: float) -> None:
    """Refuse a pool in which fewer than `least_share` of the problems have a verified solution.

    Raises:
        ValueError: Fewer have one; says how the rollouts were judged.
    """
    share = sum(bool(row.solutions) for row in rows) / len(rows)
    if share < least_share:
        raise ValueError(
            f"{pool_summary(rows)}\nThat is {share:.1%} of the problems; pool.least_share allows no"
            f" less than {least_share:.1%}.\nHint: look at the responses that are wrong, truncated"
            " or without an answer: pool.rollouts, pool.response_tokens, the prompt or the base"
            " model may be at fault. Lower pool.least_share if so few problems are meant."
        )


def _reasons(rows: Sequence[PooledSolutions]) -> Counter[Reason]:
    return sum((Counter(row.reasons) for row in rows), Counter())
