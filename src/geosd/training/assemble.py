"""From plain values to the parts of a run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import nn
from transformers import PreTrainedTokenizerBase

from geosd.files import read_jsonl
from geosd.models.checkpoints import load_model
from geosd.objectives.objective import build
from geosd.optim.update import build_update
from geosd.problems.encoding import Encoding, stop_token_ids
from geosd.problems.records import PooledSolutions, Problem
from geosd.problems.sources import get_data_source
from geosd.problems.sources.data_source import Grader
from geosd.rollout.build import build_sampler
from geosd.rollout.sampler import Decoding
from geosd.training.copies import Copies
from geosd.training.fsdp import shard
from geosd.training.heads import Heads
from geosd.training.problem_sampler import Draws
from geosd.training.processes import Link, Ranks, device_here
from geosd.training.rollout_workers import Across, Beside, Worker
from geosd.training.rollouts import Gathering
from geosd.training.run import Here, Recipe, Run


@dataclass(frozen=True)
class Files:
    """What a run reads.

    Attributes:
        base: Folder of pi_0.
        problems: Training problems, JSON lines.
        pool: Their verified solutions, JSON lines.
    """

    base: Path
    problems: Path
    pool: Path


def assemble_run(
    settings: Mapping[str, Any],
    base: Path,
    problems: Path,
    pool: Path,
    seed: int,
    ranks: Ranks | None = None,
    worker: Worker | Link | None = None,
) -> Run:
    """The parts of a run.

    Args:
        settings: Plain values, as the training section of the configuration names them, and
            `source` and `thinking` of the data section, and the section `rollout`.
        base: Folder of pi_0.
        problems: Training problems, JSON lines.
        pool: Their verified solutions, JSON lines.
        seed: The run's seed.
        ranks: The processes that train the student together, in shards; None is this one alone.
        worker: What samples and scores, here or behind a link; None leaves both to the trainers.

    Raises:
        ValueError: The objective or the update rule does not know a value it is given.
        geosd.files.DamagedLineError: A problem or pool line is damaged.
    """
    ranks = ranks or Ranks()
    compute = getattr(torch, settings["precision"])
    objective = build(**settings["objective"])
    student, tokenizer = load_model(base)
    if ranks.group is None:
        student.to(device_here())
    else:
        shard(student, ranks.group, device_here(), compute)
    if settings["recompute"]:
        student.gradient_checkpointing_enable({"use_reentrant": False})
        student.train()  # transformers recomputes in training mode only; no model here has dropout
    optimiser = settings["optimiser"]
    update = build_update(
        student,
        rule=optimiser["rule"],
        inner=optimiser["inner"] or "adamw",
        lr=settings["learning_rate"],
        betas=tuple(settings["betas"]),
        weight_decay=settings["weight_decay"],
        kfac=_kfac(optimiser["kfac"], ranks),
    )
    every, teacher = settings["anchor_every"], settings["teacher"]
    if worker is None:
        files = Files(base, problems, pool)
        here = _here(settings, files, seed, student, tokenizer, ranks)
        experience, draws, encoding = here, here.draws, here.encoding
        copies = Copies(student, every, teacher, settings["teacher_decay"], compute)
    else:
        if teacher != "live":
            raise ValueError(
                f"training.teacher is {teacher!r}, which has no place beside an inference worker;"
                " allowed is 'live'.\nHint: train without --worker."
            )
        draws = _draws(problems, pool, seed)
        encoding = _encoding(settings, student, tokenizer)[0]
        needs = frozenset(objective.needs)
        if isinstance(worker, Worker):
            experience = Beside(student, worker, needs)
        else:
            experience = Across(student, worker, needs, ranks, compute)
        copies = Heads(student, experience, every)
    return Run(
        student=student,
        objective=objective,
        update=update,
        copies=copies,
        draws=draws,
        experience=experience,
        encoding=encoding,
        seed=seed,
        ranks=ranks,
    )


def assemble_worker(
    settings: Mapping[str, Any], base: Path, problems: Path, pool: Path, seed: int
) -> Worker:
    """What samples and scores for a run; see `assemble_run` for the arguments.

    Its models have the precision that the trainers compute in.
    """
    student, tokenizer = load_model(base)
    for parameter in student.parameters():  # not .to(): rotary frequencies stay float32
        parameter.data = parameter.data.to(getattr(torch, settings["precision"]))
    student.to(device_here())
    files = Files(base, problems, pool)
    here = _here(settings, files, seed, student, tokenizer, Ranks())
    return Worker(here, settings["anchor_every"])


def _here(
    settings: Mapping[str, Any],
    files: Files,
    seed: int,
    student: nn.Module,
    tokenizer: PreTrainedTokenizerBase,
    ranks: Ranks,
) -> Here:
    encoding, grade = _encoding(settings, student, tokenizer)
    objective = build(**settings["objective"])
    return Here(
        student=student,
        gathering=Gathering(
            source=objective.rollouts,
            problems=settings["problems"],
            group=settings["group"],
            decoding=Decoding(settings["temperature"], 1.0, settings["response_tokens"]),
            privilege=settings["privilege"],
        ),
        draws=_draws(files.problems, files.pool, seed),
        encoding=encoding,
        sampler=build_sampler(settings["rollout"], files.base, encoding, model=student, live=True),
        grade=lambda response, gold: grade(response, gold).correct,
        ranks=ranks,
    )


def _draws(problems: Path, pool: Path, seed: int) -> Draws:
    return Draws(read_jsonl(problems, Problem), read_jsonl(pool, PooledSolutions), seed)


def _encoding(
    settings: Mapping[str, Any], student: nn.Module, tokenizer: PreTrainedTokenizerBase
) -> tuple[Encoding, Grader]:
    source = get_data_source(settings["source"])
    prompts = source.prompts(tokenizer, settings["thinking"])
    encoding = Encoding(tokenizer, prompts, stop_token_ids(student.generation_config))
    return encoding, source.grader()  # its processes, if it starts any, end with this one


def recipe_of(settings: Mapping[str, Any]) -> Recipe:
    """What the loop needs to know, out of the same values."""
    return Recipe(
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
