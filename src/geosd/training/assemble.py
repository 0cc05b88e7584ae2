"""From plain values to the parts of a run."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from geosd.files import read_jsonl
from geosd.models.loading import load
from geosd.objectives.registry import build
from geosd.optim.update import build_update
from geosd.problems.encoding import Encoding, stops_of
from geosd.problems.records import PooledSolutions, Problem
from geosd.problems.sources import source as source_of
from geosd.rollout.build import build_sampler
from geosd.rollout.sampler import Decoding
from geosd.training.copies import Copies
from geosd.training.draws import Draws
from geosd.training.ranks import Ranks, device_here
from geosd.training.rollouts import Gathering
from geosd.training.run import Here, Recipe, Run
from geosd.training.sharding import shard


def assemble_run(
    settings: Mapping[str, Any],
    base: Path,
    problems: Path,
    pool: Path,
    seed: int,
    ranks: Ranks | None = None,
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

    Raises:
        ValueError: The objective or the update rule does not know a value it is given.
        geosd.files.DamagedLine: A problem or pool line is damaged.
    """
    objective = build(**settings["objective"])
    draws = Draws(read_jsonl(problems, Problem), read_jsonl(pool, PooledSolutions), seed)
    student, tokenizer = load(base)
    ranks = ranks or Ranks()
    compute = getattr(torch, settings["precision"])
    if ranks.group is None:
        student.to(device_here())
    else:
        shard(student, ranks.group, device_here(), compute)
    if settings["recompute"]:
        student.gradient_checkpointing_enable({"use_reentrant": False})
        student.train()  # transformers recomputes in training mode only; no model here has dropout
    source = source_of(settings["source"])
    prompts = source.prompts(tokenizer, settings["thinking"])
    encoding = Encoding(tokenizer, prompts, stops_of(student.generation_config))
    grade = source.grader()  # its processes, if it starts any, end with this one
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
    gathering = Gathering(
        source=objective.rollouts,
        problems=settings["problems"],
        group=settings["group"],
        decoding=Decoding(settings["temperature"], 1.0, settings["response_tokens"]),
        privilege=settings["privilege"],
    )
    experience = Here(
        student=student,
        gathering=gathering,
        draws=draws,
        encoding=encoding,
        sampler=build_sampler(settings["rollout"], base, encoding, model=student, live=True),
        grade=lambda response, gold: grade(response, gold).correct,
        ranks=ranks,
    )
    return Run(
        student=student,
        objective=objective,
        update=update,
        copies=Copies(
            student,
            settings["anchor_every"],
            settings["teacher"],
            settings["teacher_decay"],
            compute,
        ),
        draws=draws,
        experience=experience,
        encoding=encoding,
        seed=seed,
        ranks=ranks,
    )


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
