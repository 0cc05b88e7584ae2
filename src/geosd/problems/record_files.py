"""Reading the files of problems and of their solutions: whole, in order, and about each other."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest
from pathlib import Path

from geosd.files import DamagedFileError, DamagedLineError, read_jsonl, remake_hint
from geosd.problems.records import PooledSolutions, Problem


def read_problems(path: Path) -> list[Problem]:
    """Read a file of problems.

    Raises:
        DamagedFileError: There is none, two share benchmark and id, or a line is no problem.
    """
    problems = read_jsonl(path, Problem)
    if not problems:
        raise DamagedFileError(f"{path}: holds no problem.\n{remake_hint(path)}")
    lines: dict[tuple[str, str], int] = {}
    for number, problem in enumerate(problems, start=1):
        first = lines.setdefault((problem.benchmark, problem.id), number)
        if first != number:
            raise DamagedLineError(
                f"{path}:{number}: id {problem.id} of {problem.benchmark} stands in line {first}"
                f" already; expected each once.\n{remake_hint(path)}"
            )
    return problems


def read_pool(path: Path, problems: Sequence[Problem]) -> list[PooledSolutions]:
    """Read the verified solutions of problems: one row a problem, in their order.

    Raises:
        DamagedFileError: A problem's row is missing or in another place, counts contradict each
            other, or a line is no row of a pool.
    """
    pool = read_jsonl(path, PooledSolutions)
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
        raise DamagedLineError(f"{path}:{number}: {got}; expected {expected}.\n{remake_hint(path)}")
    return pool
