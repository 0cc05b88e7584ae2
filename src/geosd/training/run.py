"""What a training run is made of: the numbers of the loop, the parts, and how settings make them.

The settings are plain values: the training section of the configuration, `source` and `thinking` of
its data section, and its section `rollout`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Literal

import torch
from torch import nn
from transformers import PreTrainedTokenizerBase

from geosd.models.checkpoints import load_model
from geosd.models.precision import cast_parameters
from geosd.objectives.objective import Objective, build
from geosd.objectives.reduce import LossMean
from geosd.optim.update import UpdateRule
from geosd.problems.encoding import Encoding
from geosd.problems.record_files import read_pool, read_problems
from geosd.problems.sources import get_data_source
from geosd.rollout.build import build_sampler
from geosd.rollout.sampler import SamplingParams
from geosd.training.fsdp import shard
from geosd.training.processes import Ranks, WorkerLink, local_device
from geosd.training.reference_heads import ReferenceHeads
from geosd.training.reference_models import ReferenceModels
from geosd.training.rollout_workers import (
    InProcessRollouts,
    RemoteRollouts,
    RolloutWorker,
)
from geosd.training.rollouts import (
    LocalRollouts,
    ProblemSampler,
    RolloutBatchSettings,
    RolloutSource,
)
from geosd.training.skipped_steps import SkippedSteps


@dataclass(frozen=True)
class TrainingArguments:
    """Numbers of a training run that the loop reads; named as in the settings.

    Attributes:
        steps: Updates in all.
        learning_rate: After warm-up.
        warmup: Steps over which the learning rate grows linearly from 0.
        top_k: K of the union support.
        loss_mean: "sequence" is the paper's 1/T inside the expectation over trajectories; "token"
            weighs every response token alike.
        save_every: Steps between saved states.
        max_skipped_steps: Steps without a finite loss, gradient or factor that a run may have.
        diagnose_every: Steps between measurements that cost extra forward passes.
        final_rollouts: Rollouts on which the student is measured after the last step.
        chunk: Response positions whose logits are held at once.
        microbatch: Responses that a rank takes through the models together; None takes all of its.
        precision: Of forward and backward passes; the weights, their gradients and everything the
            optimiser keeps are float32 either way (paper, Table hyperparameters).
    """

    steps: int
    learning_rate: float
    warmup: int
    top_k: int
    loss_mean: LossMean
    save_every: int
    max_skipped_steps: int
    diagnose_every: int
    final_rollouts: int
    chunk: int
    microbatch: int | None
    precision: Literal["bfloat16", "float32"]


def training_arguments(settings: Mapping[str, Any]) -> TrainingArguments:
    """Training arguments from the settings of a run."""
    return TrainingArguments(
        **{each.name: settings[each.name] for each in fields(TrainingArguments)}
    )


@dataclass(frozen=True)
class TrainingRun:
    """The parts of a run; `geosd.training.step` puts them to work.

    Attributes:
        student: The model that is trained, in place.
        objective: The method.
        update_rule: K-FAC and AdamW over the student's parameters.
        reference_models: Anchor, teacher and pi_0.
        problem_sampler: Problems and solutions by step.
        rollout_source: Where responses come from.
        encoding: Text to ids and back.
        seed: The run's seed.
        ranks: The processes that train the student together.
        skipped: The steps that made no update.
    """

    student: nn.Module
    objective: Objective
    update_rule: UpdateRule
    reference_models: ReferenceModels | ReferenceHeads
    problem_sampler: ProblemSampler
    rollout_source: RolloutSource
    encoding: Encoding
    seed: int
    ranks: Ranks = field(default_factory=Ranks)
    skipped: SkippedSteps = field(default_factory=SkippedSteps)


def assemble_run(
    settings: Mapping[str, Any],
    base: Path,
    problems: Path,
    pool: Path,
    seed: int,
    ranks: Ranks | None = None,
    worker: RolloutWorker | WorkerLink | None = None,
) -> TrainingRun:
    """Assemble a training run: student, objective, update rule, reference models, rollouts.

    Args:
        settings: Plain values.
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
    kfac = optimiser["kfac"] and {**optimiser["kfac"], "group": ranks.group}
    update_rule = UpdateRule(
        student,
        rule=optimiser["rule"],
        inner=optimiser["inner"] or "adamw",
        lr=settings["learning_rate"],
        betas=tuple(settings["betas"]),
        weight_decay=settings["weight_decay"],
        kfac=kfac,
    )
    local = _local_rollouts(settings, base, problems, pool, seed, student, tokenizer, ranks)
    every, teacher = settings["anchor_every"], settings["teacher"]
    if worker is None:
        rollout_source = local
        reference_models = ReferenceModels(
            student, every, teacher, settings["teacher_decay"], compute
        )
    elif teacher != "live":
        raise ValueError(
            f"training.teacher is {teacher!r}, which a rollout worker cannot score;"
            " allowed is 'live'.\nHint: train without --workers."
        )
    else:
        needs = frozenset(objective.needs)
        if isinstance(worker, RolloutWorker):
            rollout_source = InProcessRollouts(student, worker, needs)
        else:
            rollout_source = RemoteRollouts(student, worker, needs, ranks, compute)
        reference_models = ReferenceHeads(student, rollout_source, every, compute)
    return TrainingRun(
        student=student,
        objective=objective,
        update_rule=update_rule,
        reference_models=reference_models,
        problem_sampler=local.problem_sampler,
        rollout_source=rollout_source,
        encoding=local.encoding,
        seed=seed,
        ranks=ranks,
    )


def assemble_rollout_worker(
    settings: Mapping[str, Any],
    base: Path,
    problems: Path,
    pool: Path,
    seed: int,
    ranks: Ranks | None = None,
) -> RolloutWorker:
    """Assemble the rollout worker of a training run; see `assemble_run` for the arguments.

    Its models have the precision that the trainers compute in. `ranks` are the worker's processes,
    which have its models in shards; None is this one alone.
    """
    ranks, compute = ranks or Ranks(), getattr(torch, settings["precision"])
    student, tokenizer = load_model(base)
    cast_parameters(student, compute)
    if ranks.group is None:
        student.to(local_device())
    else:
        shard(student, ranks.group, local_device(), compute)
    local = _local_rollouts(settings, base, problems, pool, seed, student, tokenizer, ranks)
    return RolloutWorker(local, settings["anchor_every"])


def _local_rollouts(
    settings: Mapping[str, Any],
    base: Path,
    problems: Path,
    pool: Path,
    seed: int,
    student: nn.Module,
    tokenizer: PreTrainedTokenizerBase,
    ranks: Ranks,
) -> LocalRollouts:
    training = read_problems(problems)
    source = get_data_source(settings["source"])
    encoding = source.encoding(tokenizer, settings["thinking"], student.generation_config)
    return LocalRollouts(
        student=student,
        settings=RolloutBatchSettings(
            source=build(**settings["objective"]).rollouts,
            problems=settings["problems"],
            group=settings["group"],
            sampling=SamplingParams(settings["temperature"], 1.0, settings["response_tokens"]),
            privilege=settings["privilege"],
        ),
        problem_sampler=ProblemSampler(training, read_pool(pool, training), seed),
        encoding=encoding,
        sampler=build_sampler(settings["rollout"], base, encoding, model=student, live=True),
        grade=source.grader(),  # its processes, if it starts any, end with this one
        ranks=ranks,
    )
