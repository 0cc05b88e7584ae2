"""Sample pi_0 once on every training problem, and look at each state it visits.

Writes `states.csv`, one row a response position, and `states.jsonl`, the rollouts themselves with
their most uncertain positions: the states that the rule `alignment` asks every checkpoint about.
The model is looked at in the type in which it is sampled. The manifest comes last.
"""

from contextlib import closing
from pathlib import Path

import pandas as pd
import torch
from torch import Tensor

from geosd.cli.job import StepJob
from geosd.evaluation.alignment import AlignmentRollout
from geosd.evaluation.kept_batches import KeptBatches
from geosd.evaluation.states import survey_states
from geosd.files import write_text
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
from geosd.sampling.sampler import SamplingParams
from geosd.sampling.solution_pool import read_pool
from geosd.scores.state_table import most_uncertain_states
from geosd.scores.tidy import COLUMNS
from geosd.seeds import seed_of
from geosd.training.rollouts import (
    LocalRollouts,
    RolloutBatchSettings,
    RolloutProblemSampler,
    Rollouts,
)


def main(
    study: str,
    model: str,
    base: Path,
    problems: Path,
    pool: Path,
    out: Path,
    scratch: Path,
    params: Path = Path("params.yaml"),
) -> None:
    """Sample the states that pi_0 visits, and survey student and teacher at each.

    Args:
        pool: Their verified solutions; the teacher is shown one of each problem's, drawn.
        scratch: Folder of the rollouts and batches that a killed job continues from.
    """
    job = StepJob("states", params, study, model)
    settings = job.settings
    inputs = prove_checkpoint(base) | prove([problems, pool])
    precision = resolve_engine(settings["rollout"])["precision"]
    student, _ = load_model(base, getattr(torch, precision))
    student.to(job_device())
    opened = open_graded_sampler(base, settings, f"states of {model}", student)
    identity = job.identity(inputs, precision=precision)
    kept = KeptSamples(scratch, identity, resumed_completion)
    encoding = opened.encoding
    seed = seed_of(settings["seed"], "states")
    training = read_problems(problems)
    problem_sampler = RolloutProblemSampler(training, read_pool(pool, training), seed)
    # One step on all problems at once: what a first epoch would visit if nothing were learnt.
    rollout_settings = RolloutBatchSettings(
        source="student",
        problems=len(problem_sampler.problems),
        group=1,
        sampling=SamplingParams(settings["temperature"], 1.0, settings["response_tokens"]),
        privilege=settings["privilege"],
    )
    with closing(opened.source.grader()) as grade, catch_sigterm() as stop_requested:
        sampler = ResumableSampler(opened.sampler, kept, stop_requested)
        rollout_source = LocalRollouts(
            student, rollout_settings, problem_sampler, encoding, sampler, grade
        )
        rollouts, _ = rollout_source.check_prompts().collect(step=0, measured=False)
        batches = KeptBatches(scratch / "survey", identity, stop_requested)
        columns = survey_states(
            student,
            rollouts.student_prompts,
            rollouts.teacher_prompts,
            rollouts.responses,
            encoding.pad_id,
            top_k=settings["top_k"],
            batch_size=settings["problems"],
            chunk=settings["chunk"],
            batches=batches,
        )
    ranked = columns.pop("ranked")
    table = pd.DataFrame({name: value.numpy() for name, value in columns.items()})
    table["model"] = model
    table["problem_id"] = [rollouts.problems[row].id for row in table["rollout"]]
    table["selected"] = most_uncertain_states(table["entropy"], table["rollout"])
    write_jsonl(out / "states.jsonl", _probe_rollouts(rollouts, table, ranked))
    text = table[list(COLUMNS["states"])].to_csv(index=False, float_format="%.9g")
    write_text(out / "states.csv", text)
    written = [out / name for name in ("states.csv", "states.jsonl")]
    job.write_manifest(out, inputs, written, model=model, precision=precision)
    kept.clear()
    batches.clear()


def _probe_rollouts(
    rollouts: Rollouts, table: pd.DataFrame, ranked: Tensor
) -> list[AlignmentRollout]:
    """The rollouts with their selected positions, and the teacher's best tokens there."""
    return [
        AlignmentRollout(
            problem_id=rollouts.problems[row].id,
            student=tuple(rollouts.student_prompts[row]),
            teacher=tuple(rollouts.teacher_prompts[row]),
            response=tuple(rollouts.responses[row]),
            selected=tuple(chosen["position"].tolist()),
            ranked=tuple(map(tuple, ranked[chosen.index.tolist()].tolist())),
        )
        for row, chosen in table[table["selected"]].groupby("rollout", sort=True)
    ]
