"""Responses with the probability that student and teacher give each token, one row a response."""

from dataclasses import dataclass


@dataclass(frozen=True)
class ScoredResponse:
    """Record of a response of one run, and of what its student and its teacher think of it.

    The student is the model that wrote the response; the teacher is the same model, which reads
    `solution` too. `tokens` are the texts of the first tokens of the response, which joined are its
    text; an end of sequence is empty. Token n has probability `student[n]` under the student and
    `teacher[n]` under the teacher, each after the tokens before it. `length` counts all tokens of
    the response, `finish` is "length" where the cap ended it.
    """

    model: str
    variant: str
    seed: int
    problem_id: str
    question: str
    answer: str
    solution: str
    correct: bool
    finish: str
    length: int
    tokens: tuple[str, ...]
    student: tuple[float, ...]
    teacher: tuple[float, ...]
