"""The pool of verified solutions, sampled once from the base model or given: the privilege."""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from itertools import zip_longest
from pathlib import Path
from typing import Any

from geosd.files import remake_file_hint
from geosd.json_lines import DamagedLineError, read_jsonl
from geosd.problems.grading import UNDECIDED, Grader, grading_reason_counts, judge_response
from geosd.problems.records import PooledSolutionsRecord, Problem, Reason, SampleRecord


def graded_solutions(
    problems: Sequence[Problem], worked: Mapping[str, str], grade: Grader
) -> list[SampleRecord]:
    """The worked solutions that a data set gives, by problem id, graded like responses.

    Raises:
        ValueError: The data set has a worked solution of none of the problems.
    """
    rows = []
    for problem in problems:
        if text := worked.get(problem.id):
            verdict = judge_response(text, problem.answer, grade, truncated=False)
            judged = (verdict.answer, verdict.correct, "stop", verdict.reason)
            rows.append(SampleRecord(problem.benchmark, problem.id, 0, text, 0, *judged))
    if not rows:
        raise ValueError(
            "the data set has no worked solution of any of these problems; pool.solutions asks for"
            " given ones.\nHint: set pool.solutions: rollouts, or give each problem of your file a"
            " solution."
        )
    return rows


def pool_solutions(
    problems: Sequence[Problem], texts: Sequence[SampleRecord], keep: int
) -> list[PooledSolutionsRecord]:
    """Keep distinct solutions whose answer is right, at most `keep` of each problem, in order.

    `texts` are given solutions and rollouts. A truncated rollout is no solution: as privileged
    context it would teach the teacher to stop anywhere. The paper (Data) has up to 32 rollouts a
    problem, at temperature 1, and keeps 10 solutions at most, here the first ones drawn.

    Returns:
        One row per problem, in order, also for those without a solution: the exclusions are counted
        from it.
    """
    of_problem = defaultdict(list)
    for text in texts:
        of_problem[text.problem_id].append(text)
    rows = []
    for problem in problems:
        drawn = of_problem[problem.id]
        verified = [one.text for one in drawn if one.correct]
        reasons = Counter(one.reason for one in drawn)
        undecided = sum(reasons[reason] for reason in UNDECIDED)
        counts = (len(drawn), len(verified), undecided, dict(reasons))
        rows.append(
            PooledSolutionsRecord(problem.id, tuple(dict.fromkeys(verified))[:keep], *counts)
        )
    return rows


def count_pool(rows: Sequence[PooledSolutionsRecord]) -> dict[str, Any]:
    """Counts of the pool's solutions, and of those that it leaves out."""
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


def pool_summary(rows: Sequence[PooledSolutionsRecord]) -> str:
    """How many problems have a verified solution, and how the rollouts were judged, in words."""
    trained, reasons = sum(bool(row.solutions) for row in rows), _reasons(rows)
    text = f"{trained} of the {len(rows)} training problems have a verified solution"
    text += "; training sees these alone."
    return f"{text}\n{grading_reason_counts(reasons.elements(), 'rollouts')}" if reasons else text


def require_pool_solutions(rows: Sequence[PooledSolutionsRecord], least_share: float) -> None:
    """Refuse a pool in which fewer than `least_share` of the problems have a verified solution.

    Raises:
        ValueError: Fewer have one; says how the rollouts were judged.
    """
    share = sum(bool(row.solutions) for row in rows) / len(rows)
    if share < least_share or not share:
        raise ValueError(
            f"{pool_summary(rows)}\nThat is {share:.1%} of the problems; pool.least_share allows no"
            f" less than {least_share:.1%}.\nHint: look at the responses that are wrong, truncated"
            " or without an answer: pool.rollouts, pool.response_tokens, the prompt or the base"
            " model may be at fault. Lower pool.least_share if so few problems are meant."
        )


def _reasons(rows: Sequence[PooledSolutionsRecord]) -> Counter[Reason]:
    return sum((Counter(row.reasons) for row in rows), Counter())


def read_pool(path: Path, problems: Sequence[Problem]) -> list[PooledSolutionsRecord]:
    """Read the verified solutions of problems: one row a problem, in their order.

    DamagedFileError if a row is missing, in another place or none, or its counts contradict each
    other.
    """
    pool = read_jsonl(path, PooledSolutionsRecord)
    for number, (row, problem) in enumerate(zip_longest(pool, problems), start=1):
        if row is None or problem is None or row.problem_id != problem.id:
            got = "the end of the file" if row is None else f"problem_id {row.problem_id}"
            expected = "the end of the file" if problem is None else f"problem_id {problem.id}"
        elif not len(row.solutions) <= row.verified <= row.drawn:
            got = f"verified {row.verified} of drawn {row.drawn}"
            expected = f"verified from {len(row.solutions)}, the solutions, to drawn"
        elif row.reasons and sum(row.reasons.values()) != row.drawn:
            got = f"{sum(row.reasons.values())} rollouts by reason"
            expected = f"{row.drawn}, as many as were drawn"
        else:
            continue
        raise DamagedLineError(
            f"{path}:{number}: {got}; expected {expected}.\n{remake_file_hint(path)}"
        )
    return pool
