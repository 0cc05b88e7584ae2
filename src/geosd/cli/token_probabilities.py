"""Score one response of each method to the same few problems, token by token.

Each method's student writes a response to twelve training problems that have a verified solution,
as in training. Then it scores the response as student, and as teacher, with a verified solution in
its prompt. Writes `token_probabilities.jsonl`, one row a response, and the manifest last. A job
that was killed goes on from its scratch folder.
"""

from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import torch

from geosd.cli.job import StepJob
from geosd.evaluation.token_probabilities import token_probabilities, token_texts
from geosd.json_lines import write_jsonl
from geosd.models.devices import job_device
from geosd.models.load_and_save import load_model
from geosd.preemption import catch_sigterm
from geosd.problems.records import read_problems
from geosd.provenance.proof import prove, prove_checkpoint
from geosd.sampling.engines import resolve_engine
from geosd.sampling.graded_sampler import open_graded_sampler
from geosd.sampling.kept_samples import KeptSamples
from geosd.sampling.resumable import ResumableSampler, resumed_completion
from geosd.sampling.sampler import Completion, SamplingParams
from geosd.sampling.solution_pool import read_pool
from geosd.scores.scored_responses import ScoredResponse
from geosd.seeds import seed_of
from geosd.training.rollouts import LocalRollouts, RolloutBatchSettings, RolloutProblemSampler

PROBLEMS = 12
"""Problems that each method answers once."""
TOKENS = 400
"""Tokens of a response that are scored, from its first one on."""
DIGITS = 9
"""Decimals of a probability in the file."""


def main(
    study: str,
    model: str,
    checkpoints: tuple[Path, ...],
    problems: Path,
    pool: Path,
    out: Path,
    scratch: Path,
    params: Path = Path("params.yaml"),
) -> None:
    """Score responses of each method, token by token, as student and as teacher.

    Args:
        checkpoints: Folder of each method's student, in the order of the study's methods.
        pool: Verified solutions of the problems; the teacher reads one of each problem's, drawn.
        scratch: Folder of what a killed job continues from.

    Raises:
        PreemptionError: The scheduler sent SIGTERM; the finished responses are kept.
    """
    job = StepJob("token_probabilities", params, study, model)
    settings = job.settings
    given = prove([problems, pool])
    inputs = dict(given)
    training = read_problems(problems)
    problem_sampler = RolloutProblemSampler(
        training, read_pool(pool, training), seed_of(settings["seed"], "token_probabilities")
    )
    rows: list[ScoredResponse] = []
    sampled: list[KeptSamples[Completion]] = []
    for variant, checkpoint in zip(settings["methods"], checkpoints, strict=True):
        proved = prove_checkpoint(checkpoint)
        inputs |= proved
        identity = job.identity(given | proved, variant=variant)
        kept = KeptSamples(scratch / variant, identity, resumed_completion)
        sampled.append(kept)
        rows += _scored_responses(settings, model, variant, checkpoint, problem_sampler, kept)
    file = out / "token_probabilities.jsonl"
    write_jsonl(file, rows)
    job.write_manifest(out, inputs, [file], model=model, seed=settings["run_seed"])
    for kept in sampled:
        kept.clear()


def _scored_responses(
    settings: Mapping[str, Any],
    model: str,
    variant: str,
    checkpoint: Path,
    problem_sampler: RolloutProblemSampler,
    kept: KeptSamples[Completion],
) -> list[ScoredResponse]:
    """The responses of one method, sampled as far as they are not kept, and scored."""
    precision = resolve_engine(settings["rollout"])["precision"]
    student, _ = load_model(checkpoint, getattr(torch, precision))
    student.to(job_device())
    opened = open_graded_sampler(checkpoint, settings, f"responses of {variant}", student)
    encoding = opened.encoding
    rollout_settings = RolloutBatchSettings(
        source="student",
        problems=min(PROBLEMS, len(problem_sampler.problems)),
        group=1,
        sampling=SamplingParams(settings["temperature"], 1.0, settings["response_tokens"]),
        privilege=settings["privilege"],
    )
    with closing(opened.source.grader()) as grade, catch_sigterm() as stop_requested:
        sampler = ResumableSampler(opened.sampler, kept, stop_requested)
        source = LocalRollouts(student, rollout_settings, problem_sampler, encoding, sampler, grade)
        rollouts, _ = source.check_prompts().collect(step=0, measured=False)
    rows = []
    for at, problem in enumerate(rollouts.problems):
        response = rollouts.responses[at]
        scored = response[:TOKENS]
        by_student, by_teacher = (
            token_probabilities(
                student, [prompts[at]], [scored], encoding.pad_id, settings["chunk"]
            )
            for prompts in (rollouts.student_prompts, rollouts.teacher_prompts)
        )
        rows.append(
            ScoredResponse(
                model=model,
                variant=variant,
                seed=settings["run_seed"],
                problem_id=problem.id,
                question=problem.question,
                answer=problem.answer,
                solution=problem_sampler.solution(problem, step=0),
                correct=rollouts.rewards[at] > 0,
                finish="length" if rollouts.truncated[at] else "stop",
                length=len(response),
                tokens=tuple(token_texts(scored, encoding.text)),
                student=tuple(round(value, DIGITS) for value in by_student[0]),
                teacher=tuple(round(value, DIGITS) for value in by_teacher[0]),
            )
        )
    return rows
