"""Records that pass between the steps, and their files: problems, solutions, samples."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from geosd.files import DamagedFileError, remake_file_hint
from geosd.json_lines import DamagedLineError, read_jsonl

Reason = Literal[
    "correct", "wrong answer", "no answer", "unreadable", "timeout", "crash", "truncated"
]
"""Why a response is right or wrong: `truncated` where the cap ended it; else see `Verdict` in
`geosd.problems.grading`."""

ID = "id"
"""The benchmark of the held-out split of the training distribution."""


@dataclass(frozen=True)
class Problem:
    """Record of a problem: a question, without prompt markers, and its right final answer.

    Its `id` is unique within a study, e.g. `train-00017`; the benchmark is `train`, `select_train`,
    `select_validation` or a test benchmark.
    """

    id: str
    benchmark: str
    question: str
    answer: str


@dataclass(frozen=True)
class PooledSolutionsRecord:
    """Record of one problem's verified solutions, the privileged contexts of the teacher.

    Of the rollouts `drawn`, `verified` were right, before repeats were dropped; the grader could
    not decide on `undecided`, and none is kept; `reasons` counts verdicts, empty in older files.
    """

    problem_id: str
    solutions: tuple[str, ...]
    drawn: int
    verified: int
    undecided: int = 0
    reasons: dict[Reason, int] = field(default_factory=dict)


@dataclass(frozen=True)
class SampleRecord:
    """Record of one sampled response, kept whole so that it can be graded again.

    `sample` counts from 0; `text` is without special tokens, `tokens` with the end of sequence.
    `answer` is None if there is none, and of a truncated response; `finish` is "stop" where the
    model ended the response itself, "length" where the cap did. `reason` is None in older files.
    """

    benchmark: str
    problem_id: str
    sample: int
    text: str
    tokens: int
    answer: str | None
    correct: bool
    finish: Literal["stop", "length"]
    reason: Reason | None = None


def is_ood_record(benchmark: str) -> bool:
    """Whether the benchmark of a record is out of distribution: neither ID nor a selection's."""
    return benchmark != ID and not benchmark.startswith("select_")


def read_problems(path: Path) -> list[Problem]:
    """Read a file of problems; DamagedFileError if there is none, or two are one."""
    problems = read_jsonl(path, Problem)
    if not problems:
        raise DamagedFileError(f"{path}: holds no problem.\n{remake_file_hint(path)}")
    lines: dict[tuple[str, str], int] = {}
    for number, problem in enumerate(problems, start=1):
        first = lines.setdefault((problem.benchmark, problem.id), number)
        if first != number:
            raise DamagedLineError(
                f"{path}:{number}: id {problem.id} of {problem.benchmark} stands in line {first}"
                f" already; expected each once.\n{remake_file_hint(path)}"
            )
    return problems
