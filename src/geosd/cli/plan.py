"""Say what a study will cost before anything is spent: jobs, GPUs, memory, hours, disk.

Nothing is run, fetched or written, and no data need be there. Where results have manifests, the
seconds that these record stand beside what was reckoned.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import tyro
import yaml

from geosd.config import ConfigError, Study, load, resolve
from geosd.config.job_counts import job_counts
from geosd.config.model_sizes import model_size
from geosd.config.run_folders import RunFolders, kept_for
from geosd.costs import hours, training_memory
from geosd.costs.disk import PeakPart, peak_disk
from geosd.costs.update_operations import UpdateSize
from geosd.costs.workload import (
    DEFAULTS,
    Assumptions,
    GpuRequest,
    KfacSettings,
    ModelWorkload,
    SamplingWorkload,
    StoredWeights,
    TrainingWorkload,
)
from geosd.models.published_architectures import architecture, published_architectures
from geosd.objectives.objective import build
from geosd.provenance.manifest import DamagedManifestError, read_manifest
from geosd.reporting import plan_tables
from geosd.sampling.sampler import check_context

SITE = Path("profiles/slurm/site.yaml")
BENCHMARKS = {"aime24": 30, "aime25": 30, "amc23": 40, "math500": 500}
"""Problems of the whole benchmarks."""


def main(
    study: str | None = None,
    model: str | None = None,
    params: Path = Path("params.yaml"),
    assumed: Annotated[Assumptions, tyro.conf.arg(name="")] = DEFAULTS,
) -> None:
    """Print what a study, or one of its models, will cost: jobs, GPUs, hours, disk.

    Args:
        study: Name of the study; default: the one that params.yaml names.
        model: Name of one of the paper's models: its memory.
    """
    try:
        resolved = resolve(load(params), study)
        if model is None:
            parts = _of_study(resolved, assumed)
        else:
            parts = _of_model(resolved, model, assumed)
    except ValueError as error:  # a name, a share, or a model that fits nowhere
        sys.exit(str(error))
    print("\n\n".join(parts))


def _of_study(study: Study, assumed: Assumptions) -> list[str]:
    """A line for each model and rule; the peak of the disk where GPUs are asked for."""
    measured = measured_hours(study)
    works = {model: model_workload(study, model, assumed) for model in study.models}
    rows = [
        row
        for model, work in works.items()
        for row in hours.plan_rows(work, measured.get(model, {}), assumed)
    ]
    parts = [
        f"# Study {study.name}: {study.params.studies[study.name].about}",
        plan_tables.job_table(rows),
        f"Once each, without GPU: {', '.join(['data', 'analyse', *study.outputs])}.",
    ]
    for model in study.models:
        if spare := spare_context(study, model):
            room = " and ".join(f"{tokens:,} for the {reader}" for reader, tokens in spare.items())
            parts.append(f"A question to {model} may take {room}, in tokens of its context.")
    if any(row.gpus for row in rows):
        beyond = study.section("evaluation")
        further = len(BENCHMARKS) * (beyond["coverage"] > beyond["samples"])
        calls = 1 if study.section("data")["purpose"] != "study" else 1 + len(BENCHMARKS) + further
        savings = {
            model: hours.evaluation_savings(
                work, calls, study.section("rollout", model)["memory"], assumed
            )
            for model, work in works.items()
        }
        parts += [
            plan_tables.evaluation_table(savings),
            plan_tables.peak_table(study_peak(study, assumed)),
            plan_tables.assumption_table(assumed),
        ]
    return parts


def _of_model(study: Study, model: str, assumed: Assumptions) -> list[str]:
    """Memory by part, and the whole state of a training."""
    known = [name for name in study.params.models if name in published_architectures()]
    if model not in known:
        raise ConfigError(
            f"{model!r} is none of the paper's models in params.yaml. Allowed: {', '.join(known)}."
            "\nHint: without --model the plan lists every model of the study."
        )
    work, shape = model_workload(study, model, assumed), architecture(model)
    request = work.gpu_requests["train"]
    parts_of = (training_memory.training_gpu_memory, training_memory.inference_gpu_memory)
    largest = max(
        (
            [part(shape, one, request, assumed) for part in parts_of]
            for one in work.trainings.values()
        ),
        key=lambda memory: sum(map(training_memory.total_bytes, memory)),
    )
    parts = [f"# {shape.label} in study {study.name}: N = {shape.parameters / 1e9:.3f} billion"]
    gpus = {"training": request.trainers, "inference": request.inference}
    for (role, n), parts_of_gpu in zip(gpus.items(), largest, strict=True):
        if n:
            title = f"One of {n} {role} GPUs"
            parts.append(plan_tables.gpu_memory_table(title, parts_of_gpu, assumed))
    kfac = study.section("training", model)["optimiser"]["kfac"]
    parts.append(plan_tables.training_state_table(model, kfac["blocks"], kfac["storage"]))
    return [*parts, plan_tables.assumption_table(assumed)]


def spare_context(study: Study, model: str) -> dict[str, int]:
    """Tokens that a model's context leaves for a question and its template: reader -> tokens.

    The teacher also reads a solution, which may be as long as the pool's cap. Without entries where
    the context is not known before the base model is there.

    Raises:
        geosd.sampling.sampler.ContextError: A reader has no room for one token.
    """
    context = model_size(model, study.section("base", model)).context
    sections = [study.section("pool", model), study.section("evaluation", model)]
    pool, evaluation = (section["response_tokens"] for section in sections)
    trained = max((study.training(model, v)["response_tokens"] for v in study.trained), default=0)
    caps = {"student": (0, max(pool, evaluation, trained)), "teacher": (pool, trained)}
    if not isinstance(context, int):
        return {}
    for reader, (solution, cap) in caps.items():
        check_context(context, solution + 1, cap, f"the {reader} of {model}")
    return {reader: context - sum(parts) for reader, parts in caps.items()}


def study_peak(study: Study, assumed: Assumptions) -> list[PeakPart]:
    """The most that the study's published models have on disk at once, on the site's schedule."""
    if SITE.exists():
        site = yaml.safe_load(SITE.read_text(encoding="utf-8"))
        assumed = replace(assumed, jobs=site["jobs"], trainings=site["trainings"])
    # A study's early stops are links to snapshots that it has counted.
    waiting = [file for file in kept_for(study) if "/stopped_" not in file]
    works = [
        model_workload(study, model, assumed, sum(f"/{model}/" in file for file in waiting))
        for model in study.models
        if model in published_architectures()
    ]
    return peak_disk(works, study.overlay.keep, assumed) if works else []


def measured_hours(study: Study) -> dict[str, dict[str, list[float]]]:
    """Hours of each finished job by its manifest: model -> rule -> hours."""
    folders, jobs = RunFolders(study), {}
    for row in folders.rows():
        jobs[row.base] = (row.model, "base")
        jobs[folders.pool(row.model, row.draw)] = (row.model, "pool")
        jobs[folders.states(row.model, row.draw)] = (row.model, "states")
        if row.train and row.variant not in study.early_stops:
            jobs[row.train] = (row.model, "train")
        jobs[row.evaluate] = (row.model, "evaluate" if row.train else "evaluate_pi_0")
    measured: dict[str, dict[str, list[float]]] = {}
    for folder, (model, rule) in jobs.items():
        with suppress(DamagedManifestError):  # absent, or not whole
            seconds = read_manifest(Path(folder))["wall_s"]
            measured.setdefault(model, {}).setdefault(rule, []).append(seconds / hours.HOUR)
    return measured


def model_workload(
    study: Study, model: str, assumed: Assumptions, waiting: int = 0
) -> ModelWorkload:
    """What the jobs of a model do; `waiting` files of weights other studies have yet to read."""
    pool, storage = study.section("pool", model), study.section("training", model)["storage"]
    data, counts = study.section("data", model), job_counts(study)
    problems = data["select_train"] if data["purpose"] == "selection" else data["train"]
    trainings = {variant: study.training(model, variant) for variant in study.trained}
    # Variants of equal settings are one run; an early stop's weights and its snapshot of the longer
    # run are one file.
    runs = {json.dumps(one, sort_keys=True): v for v, one in trainings.items()}
    stops = [study.early_stops[v] for v in runs.values() if v in study.early_stops]
    files = {
        v: 1 + len(trainings[v]["snapshots"]) + stops.count(v)
        for v in runs.values()
        if v not in study.early_stops
    }
    resources = study.params.resources_of(model)
    jobs = {rule: resources.job(rule) for rule in (*counts, "train")}
    return ModelWorkload(
        model=model,
        jobs=counts,
        gpu_requests={
            rule: GpuRequest(job.gpus, getattr(job, "inference_gpus", 0))
            for rule, job in jobs.items()
        },
        pool=SamplingWorkload(problems * pool["rollouts"], pool["response_tokens"], problems, 1),
        evaluation=_evaluation(data, study.section("evaluation", model)),
        trainings={
            variant: _training(settings, assumed)
            for variant, settings in trainings.items()
            if variant not in study.early_stops
        },
        stored=StoredWeights(
            {"float32": 4, "bfloat16": 2}[storage],
            len(study.seeds) * sum(files.values()),
            max(files.values()),
            waiting,
        ),
    )


def _evaluation(data: Mapping[str, Any], evaluation: Mapping[str, Any]) -> SamplingWorkload:
    """Samples of an evaluation: all benchmarks are one call."""
    cap, samples = evaluation["response_tokens"], evaluation["samples"]
    if data["purpose"] != "study":
        problems = data["select_validation"]
        return SamplingWorkload(problems * samples, cap, problems, 1)
    each = data["test_per_benchmark"]
    ood = sum(BENCHMARKS.values()) if each is None else each * len(BENCHMARKS)
    sequences = data["test_id"] * samples + ood * evaluation["coverage"]
    return SamplingWorkload(sequences, cap, data["test_id"] + ood, 1)


def _training(settings: Mapping[str, Any], assumed: Assumptions) -> TrainingWorkload:
    objective, kfac = build(**settings["objective"]), settings["optimiser"]["kfac"]
    cap = settings["response_tokens"]
    sequences = settings["group"] if objective.rollouts == "group" else settings["problems"]
    natural = settings["optimiser"]["rule"] == "kfac"
    return TrainingWorkload(
        steps=settings["steps"],
        update=UpdateSize(sequences, round(assumed.length * cap)),
        cap=cap,
        generates=objective.rollouts != "solution",
        needs=objective.needs,
        kfac=KfacSettings(kfac["blocks"], kfac["subsample"], kfac["storage"]) if natural else None,
        recompute=settings["recompute"],
        chunk=settings["chunk"],
        microbatch=settings["microbatch"] or settings["problems"],
    )
