"""What one step learns from: responses, the prompts student and teacher read them after, rewards.

B = responses of the step.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from geosd.problems.encoding import Encoding
from geosd.problems.records import Problem
from geosd.rollout.sampler import Decoding, Sampler
from geosd.seeds import seed_of
from geosd.training.problem_sampler import Draws

Grade = Callable[[str, str], bool]
"""(response text, gold answer) -> is it right."""


@dataclass(frozen=True)
class Rollouts:
    """The responses of one step.

    Attributes:
        problems: The problem of each response [B].
        student: Prompt ids that the student reads [B].
        teacher: Prompt ids that the teacher reads, with privileged context [B].
        responses: Response ids, sampled from the student (SFT: a solution's) [B].
        rewards: 1.0 where the response's answer is right, else 0.0 [B].
        truncated: Where the cap ended the response [B].
    """

    problems: list[Problem]
    student: list[list[int]]
    teacher: list[list[int]]
    responses: list[list[int]]
    rewards: list[float]
    truncated: list[bool]


@dataclass(frozen=True)
class Gathering:
    """How the responses of a step come about.

    Attributes:
        source: "student" samples one response for each of `problems` problems; "group" samples
            `group` responses to one problem (GRPO); "solution" takes pool solutions of `problems`
            problems and samples nothing (SFT).
        problems: Problems a step.
        group: Responses to the one problem of a "group".
        decoding: How the student samples.
        privilege: Fraction of the solution that the teacher sees.
    """

    source: Literal["student", "group", "solution"]
    problems: int
    group: int
    decoding: Decoding
    privilege: float


def gather(
    how: Gathering,
    draws: Draws,
    encoding: Encoding,
    sampler: Sampler,
    grade: Grade,
    step: int,
) -> Rollouts:
    """The responses of a step, fresh from the current student.

    A truncated response keeps its place in a distillation loss (its states were visited like any
    others) and earns no reward.

    Args:
        how: Where responses come from.
        draws: The run's problems and solutions by step.
        encoding: Text to ids and back.
        sampler: Samples the current student.
        grade: Decides whether an answer is right.
        step: The step, from 0.
    """
    if how.source == "group":
        problems = draws.batch(step, 1) * how.group
    else:
        problems = draws.batch(step, how.problems)
    solutions = [draws.solution(problem, step) for problem in problems]
    student = [encoding.student(problem) for problem in problems]
    teacher = [
        encoding.teacher(problem, solution, how.privilege)
        for problem, solution in zip(problems, solutions, strict=True)
    ]
    if how.source == "solution":
        responses = [encoding.response(solution) for solution in solutions]
        truncated = [False] * len(responses)
    else:
        completions = sampler.sample(student, how.decoding, seed_of(draws.seed, "rollout", step))
        responses = [list(completion.ids) for completion in completions]
        truncated = [completion.finish == "length" for completion in completions]
    rewards = [
        float(not cut and grade(encoding.text(response), problem.answer))
        for cut, response, problem in zip(truncated, responses, problems, strict=True)
    ]
    return Rollouts(problems, student, teacher, responses, rewards, truncated)
