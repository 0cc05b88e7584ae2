"""Files of problems and pools are read whole, in order, and about each other."""

from __future__ import annotations

from dataclasses import replace

import pytest

from geosd.files import DamagedFileError
from geosd.json_lines import write_jsonl
from geosd.problems.records import PooledSolutionsRecord, Problem, read_problems
from geosd.sampling.solution_pool import read_pool

PROBLEMS = [Problem(f"p{n}", "train", f"{n}+1?", str(n + 1)) for n in range(4)]
POOL = [PooledSolutionsRecord(p.id, (f"So {p.answer}.",), 4, 2) for p in PROBLEMS]


def refused(read, path, rows, *arguments) -> str:
    write_jsonl(path, rows)
    with pytest.raises(DamagedFileError) as raised:
        read(path, *arguments)
    text = str(raised.value)
    assert text.endswith("the rule that writes it makes it anew.") and "\nHint: `rm " in text
    return text.removeprefix(str(path)).partition(".\n")[0]


def test_whole_files_are_read_as_they_were_written(tmp_path):
    write_jsonl(tmp_path / "train.jsonl", PROBLEMS)
    write_jsonl(tmp_path / "pool.jsonl", POOL)
    assert read_problems(tmp_path / "train.jsonl") == PROBLEMS
    assert read_pool(tmp_path / "pool.jsonl", PROBLEMS) == POOL


def test_problems_are_there_once(tmp_path):
    path = tmp_path / "train.jsonl"
    assert refused(read_problems, path, []) == ": holds no problem"
    twice = refused(read_problems, path, [*PROBLEMS, PROBLEMS[1]])
    assert twice == ":5: id p1 of train stands in line 2 already; expected each once"
    write_jsonl(path, [PROBLEMS[0], replace(PROBLEMS[0], benchmark="test")])
    assert len(read_problems(path)) == 2


@pytest.mark.parametrize(
    ("rows", "problem"),
    [
        (POOL[:-1], ":4: the end of the file; expected problem_id p3"),
        (POOL[1:], ":1: problem_id p1; expected problem_id p0"),
        ([*POOL, POOL[0]], ":5: problem_id p0; expected the end of the file"),
        ([replace(POOL[0], verified=5), *POOL[1:]], ":1: verified 5 of drawn 4; expected verified"),
        ([replace(POOL[0], verified=0), *POOL[1:]], ":1: verified 0 of drawn 4; expected verified"),
    ],
)
def test_a_pool_is_that_of_its_problems(tmp_path, rows, problem):
    assert refused(read_pool, tmp_path / "pool.jsonl", rows, PROBLEMS).startswith(problem)
