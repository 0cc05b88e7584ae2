"""From plain values to the parts of a run."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import nn
from transformers import PreTrainedTokenizerBase

from geosd.files import read_jsonl
from geosd.models.checkpoints import load_model
from geosd.objectives.objective import build
from geosd.optim.update import UpdateRule
from geosd.problems.encoding import Encoding, stop_token_ids
from geosd.problems.records import PooledSolutions, Problem
from geosd.problems.sources import get_data_source
from geosd.problems.sources.data_source import Grader
from geosd.rollout.build import build_sampler
from geosd.rollout.sampler import SamplingParams
from geosd.training.fsdp import shard
from geosd.training.problem_sampler import ProblemSampler
from geosd.training.processes import Ranks, WorkerLink, local_device
from geosd.training.reference_models import ReferenceHeads, ReferenceModels
from geosd.training.rollout_workers import InProcessRollouts, RemoteRollouts, RolloutWorker
from geosd.training.rollouts import LocalRollouts, RolloutSettings
from geosd.training.run import TrainingArguments, TrainingRun


def assemble_run(
    settings: Mapping[str, Any],
    base: Path,
    problems: Path,
    pool: Path,
    seed: int,
    ranks: Ranks | None = None,
    worker: RolloutWorker | WorkerLink | None = None,
) -> TrainingRun:
    """The parts of a run.

    Args:
        settings: Plain values, as the training section of the configuration names them, and
            `source` and `thinking` of the data section, and the section `rollout`.
        base: Folder of pi_0.
        problems: Training problems, JSON lines.
        pool: Their verified solutions, JSON lines.
        seed: The run's seed.
        ranks: The processes that train the student together, in shards; None is this one alone.
        worker: Samples and scores, in this process or behind a link; None leaves both to the
            trainers.

    Raises:
        ValueError: The objective or the update rule does not know a value it is given.
        geosd.files.DamagedLineError: A problem or pool line is damaged.
    """
    ranks = ranks or Ranks()
    compute = getattr(torch, settings["precision"])
    objective = build(**settings["objective"])
    student, tokenizer = load_model(base)
    if ranks.group is None:
        student.to(local_device())
    else:
        shard(student, ranks.group, local_device(), compute)
    if settings["recompute"]:
        student.gradient_checkpointing_enable({"use_reentrant": False})
        student.train()  # transformers recomputes in training mode only; no model here has dropout
    optimiser = settings["optimiser"]
    update_rule = UpdateRule(
        student,
        rule=optimiser["rule"],
        inner=optimiser["inner"] or "adamw",
        lr=settings["learning_rate"],
        betas=tuple(settings["betas"]),
        weight_decay=settings["weight_decay"],
        kfac=_kfac(optimiser["kfac"], ranks),
    )
    problem_sampler = _problem_sampler(problems, pool, seed)
    every, teacher = settings["anchor_every"], settings["teacher"]
    if worker is None:
        rollout_source = _local_rollouts(settings, base, problem_sampler, student, tokenizer, ranks)
        encoding = rollout_source.encoding
        reference_models = ReferenceModels(
            student, every, teacher, settings["teacher_decay"], compute
        )
    else:
        if teacher != "live":
            raise ValueError(
                f"training.teacher is {teacher!r}, which a rollout worker cannot score;"
                " allowed is 'live'.\nHint: train without --worker."
            )
        encoding, _ = _encoding_and_grader(settings, student, tokenizer)
        needs = frozenset(objective.needs)
        if isinstance(worker, RolloutWorker):
            rollout_source = InProcessRollouts(student, worker, needs)
        else:
            rollout_source = RemoteRollouts(student, worker, needs, ranks, compute)
        reference_models = ReferenceHeads(student, rollout_source, every)
    return TrainingRun(
        student=student,
        objective=objective,
        update_rule=update_rule,
        reference_models=reference_models,
        problem_sampler=problem_sampler,
        rollout_source=rollout_source,
        encoding=encoding,
        seed=seed,
        ranks=ranks,
    )


def assemble_rollout_worker(
    settings: Mapping[str, Any], base: Path, problems: Path, pool: Path, seed: int
) -> RolloutWorker:
    """The worker that samples and scores for a run; see `assemble_run` for the arguments.

    Its models have the precision that the trainers compute in.
    """
    student, tokenizer = load_model(base)
    for parameter in student.parameters():  # not .to(): rotary frequencies stay float32
        parameter.data = parameter.data.to(getattr(torch, settings["precision"]))
    student.to(local_device())
    problem_sampler = _problem_sampler(problems, pool, seed)
    local = _local_rollouts(settings, base, problem_sampler, student, tokenizer, Ranks())
    return RolloutWorker(local, settings["anchor_every"])


def _local_rollouts(
    settings: Mapping[str, Any],
    base: Path,
    problem_sampler: ProblemSampler,
    student: nn.Module,
    tokenizer: PreTrainedTokenizerBase,
    ranks: Ranks,
) -> LocalRollouts:
    encoding, grade = _encoding_and_grader(settings, student, tokenizer)
    objective = build(**settings["objective"])
    return LocalRollouts(
        student=student,
        settings=RolloutSettings(
            source=objective.rollouts,
            problems=settings["problems"],
            group=settings["group"],
            sampling=SamplingParams(settings["temperature"], 1.0, settings["response_tokens"]),
            privilege=settings["privilege"],
        ),
        problem_sampler=problem_sampler,
        encoding=encoding,
        sampler=build_sampler(settings["rollout"], base, encoding, model=student, live=True),
        is_correct=lambda response, gold: grade(response, gold).correct,
        ranks=ranks,
    )


def _problem_sampler(problems: Path, pool: Path, seed: int) -> ProblemSampler:
    return ProblemSampler(read_jsonl(problems, Problem), read_jsonl(pool, PooledSolutions), seed)


def _encoding_and_grader(
    settings: Mapping[str, Any], student: nn.Module, tokenizer: PreTrainedTokenizerBase
) -> tuple[Encoding, Grader]:
    source = get_data_source(settings["source"])
    prompts = source.prompts(tokenizer, settings["thinking"])
    encoding = Encoding(tokenizer, prompts, stop_token_ids(student.generation_config))
    return encoding, source.grader()  # its processes, if it starts any, end with this one


def training_arguments(settings: Mapping[str, Any]) -> TrainingArguments:
    """The numbers that the loop reads, from the same plain values."""
    return TrainingArguments(
        steps=settings["steps"],
        learning_rate=settings["learning_rate"],
        warmup_steps=settings["warmup"],
        top_k=settings["top_k"],
        loss_mean=settings["loss_mean"],
        save_every=settings["save_every"],
        diagnose_every=settings["diagnose_every"],
        chunk=settings["chunk"],
        microbatch=settings["microbatch"],
        precision=settings["precision"],
    )


def _kfac(values: Mapping[str, Any] | None, ranks: Ranks) -> dict[str, Any] | None:
    if values is None:
        return None
    return {**values, "storage": getattr(torch, values["storage"]), "group": ranks.group}
