"""The records that pass between the steps: problems, their verified solutions, sampled answers."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

Reason = Literal[
    "correct", "wrong answer", "no answer", "unreadable", "timeout", "crash", "truncated"
]
"""Why a response is right or wrong: `truncated` where the cap ended it; else see `Verdict` in
`geosd.problems.grading`."""

ID = "id"
"""The benchmark of the held-out split of the training distribution."""


@dataclass(frozen=True)
class Problem:
    """Record of a problem: one question and its answer.

    Attributes:
        id: Unique within a study, e.g. `train-00017`.
        benchmark: The set that the problem belongs to: `train`, `select_train`,
            `select_validation`, or the name of a test benchmark.
        question: The question alone, without prompt markers.
        answer: The right final answer.
    """

    id: str
    benchmark: str
    question: str
    answer: str


@dataclass(frozen=True)
class PooledSolutions:
    """Record of one problem's verified solutions, the privileged contexts of the teacher.

    Attributes:
        problem_id: Whose they are.
        solutions: Distinct responses whose answer is right, at most `keep` of them.
        drawn: Rollouts that were drawn.
        verified: Rollouts whose answer was right, before repeats were dropped.
        undecided: Rollouts with an answer that the grader could not decide on; none is kept.
        reasons: Rollouts by the reason of their verdict; empty in files from before it was kept.
    """

    problem_id: str
    solutions: tuple[str, ...]
    drawn: int
    verified: int
    undecided: int = 0
    reasons: dict[Reason, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Sample:
    """Record of one sampled response, kept whole so that it can be graded again.

    Attributes:
        benchmark: The problem's benchmark.
        problem_id: The problem's id.
        sample: Number of the sample, 0 .. k-1.
        text: The response, without special tokens.
        tokens: Its length in tokens, end of sequence included.
        answer: The extracted answer; None if there is none, and of a truncated response.
        correct: Whether it is right.
        finish: "stop" if the model ended the response itself, "length" if the cap did.
        reason: Why it is right or wrong. None in files from before it was kept.
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


def is_out_of_distribution(benchmark: str) -> bool:
    """Whether the benchmark of a record is out of distribution: neither ID nor a selection's."""
    return benchmark != ID and not benchmark.startswith("select_")
