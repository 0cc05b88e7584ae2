"""Data of one step: its problems, the responses to them, and their rewards.

B = responses of the step, T = tokens of a response, D = hidden width.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from heapq import nlargest
from typing import Any, Literal

from torch import Tensor, nn

from geosd.models.context_length import check_context
from geosd.objectives.objective import ResponseSource
from geosd.problems.encoding import Encoding
from geosd.problems.grading import Grader, judge_response
from geosd.problems.records import PooledSolutionsRecord, Problem
from geosd.sampling.broken_logits import name_broken_logits
from geosd.sampling.paused_part import never_paused
from geosd.sampling.sampler import Sampler, SamplingParams
from geosd.seeds import seed_of
from geosd.training.fsdp import summon_full_params
from geosd.training.processes import TrainingProcesses

LONGEST = 64
"""Problems and solutions, the longest in characters, whose prompts are counted before a run."""

HiddenStates = dict[str, list[Tensor]]
"""Model -> for each response of the step, its hidden states at that response [T, D]."""


class RolloutProblemSampler:
    """Draws each step's problems: epoch by epoch, each in an order of its own, without repeats.

    An epoch need not be a whole number of steps: a step may hold the end of one and the beginning
    of the next. Every draw depends on the seed and the step alone, never on earlier draws. A
    problem without a verified solution in the pool is not trained on (paper, Setup).

    Raises:
        ValueError: No problem has a verified solution.
    """

    def __init__(
        self, problems: Sequence[Problem], pool: Sequence[PooledSolutionsRecord], seed: int
    ) -> None:
        self.solutions = {row.problem_id: row.solutions for row in pool if row.solutions}
        self.problems = [problem for problem in problems if problem.id in self.solutions]
        self.seed = seed
        if not self.problems:
            raise ValueError(
                f"none of the {len(problems)} training problems has a verified solution in the"
                " pool.\nHint: draw more rollouts a problem (pool.rollouts), or train the base"
                " model longer."
            )

    def batch(self, step: int, size: int, count: int | None = None) -> list[Problem]:
        """The `size` problems of a step, or the `count` problems from the step's first one on."""
        return [self._at(step * size + offset) for offset in range(count or size)]

    def solution(self, problem: Problem, step: int) -> str:
        """One of the problem's verified solutions, uniformly: c ~ C(. | x)."""
        solutions = self.solutions[problem.id]
        draw = random.Random(seed_of(self.seed, "solution", step, problem.id))
        return solutions[draw.randrange(len(solutions))]

    def _at(self, index: int) -> Problem:
        epoch, place = divmod(index, len(self.problems))
        order = list(range(len(self.problems)))
        random.Random(seed_of(self.seed, "order", epoch)).shuffle(order)
        return self.problems[order[place]]


@dataclass(frozen=True)
class Rollouts:
    """The B responses of one training step, with the problem, prompts and reward of each.

    Prompts and responses are token ids; SFT's responses are solutions. A reward is 1.0 where the
    answer is right, else 0.0; `truncated` says where the cap ended the response.
    `solution_prompts` are the teacher's prompts without the question, where anything reads them.
    `sync` has GB and seconds of the weights that went to the engine, for the log.
    """

    problems: list[Problem]
    student_prompts: list[list[int]]
    teacher_prompts: list[list[int]]
    responses: list[list[int]]
    rewards: list[float]
    truncated: list[bool]
    solution_prompts: list[list[int]] | None = None
    sync: dict[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Refuse a response without a token: it has no position, and every mean would skip it."""
        for problem, response in zip(self.problems, self.responses, strict=True):
            if not response:
                raise ValueError(
                    f"the response to problem {problem.id} has no token.\nHint: a sampler ends a"
                    " response with the end token, or cuts it at the cap."
                )

    def summary(self) -> dict[str, float]:
        """Mean length; shares of truncated, right and, if any, empty responses (an end alone)."""
        responses, finished = len(self.responses), zip(self.responses, self.truncated, strict=True)
        empty = sum(len(response) == 1 and not cut for response, cut in finished)
        return {
            "rollout/tokens": sum(map(len, self.responses)) / responses,
            "rollout/truncated": sum(self.truncated) / responses,
            "rollout/accuracy": sum(self.rewards) / responses,
            **({"rollout/empty": empty / responses} if empty else {}),
            **self.sync,
        }


@dataclass(frozen=True)
class RolloutBatchSettings:
    """Which responses a training step collects: of what source, for how many problems, sampled how.

    "student" samples one response for each of `problems` problems; "group" samples `group`
    responses to one problem (GRPO); "solution" takes pool solutions of `problems` problems (SFT).
    The teacher sees the fraction `privilege` of a solution: after the question (`teacher_reads`
    "question"), in place of it ("solution_only"), or one and the other ("both").
    """

    source: ResponseSource
    problems: int
    group: int
    sampling: SamplingParams
    privilege: float
    teacher_reads: Literal["question", "solution_only", "both"] = "question"


@dataclass(frozen=True)
class LocalRollouts:
    """Responses sampled where the student is trained: by the first rank, from the whole student.

    `RemoteRollouts` of `geosd.training.rollout_workers` has the same `collect` and `record`. Where
    `stop_requested` is true, the rollouts of a step end with a `PartLeftError`.
    """

    student: nn.Module
    settings: RolloutBatchSettings
    problem_sampler: RolloutProblemSampler
    encoding: Encoding
    sampler: Sampler
    grade: Grader
    ranks: TrainingProcesses = field(default_factory=TrainingProcesses)
    stop_requested: Callable[[], bool] = never_paused

    def check_prompts(self) -> LocalRollouts:
        """Return self, or raise ContextError if a longest prompt and its response do not fit."""
        solutions = self.problem_sampler.solutions
        pairs = [(one, text) for one in self.problem_sampler.problems for text in solutions[one.id]]
        longest = nlargest(LONGEST, pairs, key=lambda pair: len(pair[0].question) + len(pair[1]))
        for problem, solution in longest:
            self._prompts(problem, solution, self.settings.sampling.max_new_tokens)
        return self

    def _prompts(self, problem: Problem, solution: str, cap: int) -> tuple[list[int], list[int]]:
        """Prompts of student and teacher, which leave room for `cap` tokens of a response."""
        student = self.encoding.student(problem)
        teacher = self.encoding.teacher(problem, solution, self.settings.privilege)
        context = getattr(self.student.config, "max_position_embeddings", None)
        for reader, prompt in (("student", student), ("teacher", teacher)):
            check_context(context, len(prompt), cap, f"the {reader} of problem {problem.id}")
        return student, teacher

    def record(self) -> dict[str, Any]:
        """The sampler's entry in a manifest."""
        return self.sampler.record()

    def collect(
        self, step: int, measured: bool, count: int | None = None
    ) -> tuple[Rollouts, HiddenStates]:
        """The responses of a step, the same on every rank, and hidden states computed by a worker.

        `measured`: the log needs the states of all models. With a `count` they are so many
        responses of the student as it is, whatever the method trains on, each to another problem
        from the step's first one on; the anchor stays as it is.
        """
        with self.gathered(count):
            return self.ranks.broadcast(lambda: self.draw(step, count)), {}

    @contextmanager
    def gathered(self, count: int | None = None) -> Iterator[None]:
        """Context, of every rank, in which the first one may `draw` from a sharded student."""
        if self._source(count) == "solution":
            yield
        elif self.sampler.copies_weights:
            if not self.ranks.is_main:
                self.sampler.join_sync()
            yield
        else:
            with summon_full_params(self.student):
                yield

    def _source(self, count: int | None) -> ResponseSource:
        return self.settings.source if count is None else "student"

    def draw(self, step: int, count: int | None = None) -> Rollouts:
        """The student's responses of a step; a truncated one is trained on and has no reward."""
        source = self._source(count)
        settings, encoding, problem_sampler = self.settings, self.encoding, self.problem_sampler
        grouped = source == "group"
        problems = problem_sampler.batch(step, 1 if grouped else settings.problems, count)
        problems *= settings.group if grouped else 1
        solutions = [problem_sampler.solution(problem, step) for problem in problems]
        sync: dict[str, float] = {}
        responses, caps = [], [settings.sampling.max_new_tokens] * len(problems)
        if source == "solution":
            responses = [encoding.response(solution) for solution in solutions]
            caps = list(map(len, responses))
        prompts = list(map(self._prompts, problems, solutions, caps))
        student_prompts, teacher_prompts = map(list, zip(*prompts, strict=True))
        solution_prompts = None
        if settings.teacher_reads != "question":
            solution_prompts = [
                encoding.solution_only(solution, settings.privilege) for solution in solutions
            ]
        if settings.teacher_reads == "solution_only":
            teacher_prompts, solution_prompts = solution_prompts, None
        truncated = [False] * len(responses)
        if source != "solution":
            seed = seed_of(problem_sampler.seed, "rollout", step)
            # Only between the update before and the one of this step: there a step may be left.
            self.sampler.stop_requested = self.stop_requested if count is None else never_paused
            with name_broken_logits(problems):
                completions = self.sampler.sample(student_prompts, settings.sampling, seed)
            sync = self.sampler.sync_values()
            responses = [list(completion.ids) for completion in completions]
            truncated = [completion.finish == "length" for completion in completions]
        rewards = [
            float(
                judge_response(
                    encoding.text(response),
                    problem.answer,
                    self.grade,
                    truncated=cut,
                    opened_thought=encoding.opens_thought,
                ).correct
            )
            for cut, response, problem in zip(truncated, responses, problems, strict=True)
        ]
        return Rollouts(
            problems,
            student_prompts,
            teacher_prompts,
            responses,
            rewards,
            truncated,
            solution_prompts,
            sync,
        )
