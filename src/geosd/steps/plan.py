"""Say what a study will cost before anything is spent: jobs, GPUs, memory, hours, disk.

Nothing is run, fetched or written, and no data need be there.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import tyro

from geosd.claims.published import published_gpu_hours
from geosd.config import ConfigError, Study, load, resolve
from geosd.config.job_counts import job_counts
from geosd.config.params_schema import StudySchema
from geosd.costs import hours_and_disk, training_memory
from geosd.costs.update_operations import UpdateSize
from geosd.costs.workload import (
    DEFAULTS,
    Assumptions,
    GpuRequest,
    KfacSettings,
    ModelWorkload,
    SamplingWorkload,
    TrainingWorkload,
)
from geosd.models.published_architectures import architecture, published_architectures
from geosd.objectives.objective import build
from geosd.reporting import plan_tables
from geosd.steps import begin

BASELINE = "fwdkl"
"""The variant whose hours at 8B stand for the paper's "single 8B baseline method"."""
BENCHMARKS = {"aime24": 30, "aime25": 30, "amc23": 40, "math500": 500}
"""Problems of the whole benchmarks."""


def main(
    study: str | None = None,
    model: str | None = None,
    params: Path = Path("params.yaml"),
    assumed: Annotated[Assumptions, tyro.conf.arg(name="")] = DEFAULTS,
) -> None:
    """Print the plan of a study, or of one of its models in detail: jobs, GPUs, hours.

    Args:
        study: Name of the study; default: the one that params.yaml names.
        model: Name of one of the paper's models: its memory, units, and seconds of a step.
        params: The configuration.
        assumed: What is not known before a run.
    """
    try:
        resolved = resolve(load(params), study)
        paper = _paper_workload(resolved, assumed)
        ratios = hours_and_disk.paper_hours_ratio(paper, BASELINE, published_gpu_hours(), assumed)
        if model is None:
            parts = _of_study(resolved, ratios, assumed)
        else:
            parts = _of_model(resolved, model, ratios, assumed)
    except ValueError as error:  # a name, a share, or a model that fits nowhere
        sys.exit(str(error))
    print("\n\n".join(parts))


def _of_study(study: Study, ratios: Mapping[str, float], assumed: Assumptions) -> list[str]:
    """A line for each model and rule; of models without a GPU, as the miniature's, a mere count."""
    works = [model_workload(study, model, assumed) for model in study.models]
    rows = [row for work in works for row in hours_and_disk.plan_rows(work, ratios, assumed)]
    parts = [
        f"# Study {study.name}: {study.params.studies[study.name].about}",
        plan_tables.job_table(rows),
        f"Once each, without GPU: {', '.join(['data', 'analyse', *study.outputs])}.",
    ]
    if any(row.gpus for row in rows):
        parts.append(
            plan_tables.disk_sentence([hours_and_disk.disk_bytes(work, assumed) for work in works])
        )
        parts.append(plan_tables.assumption_table(assumed, ratios))
    return parts


def _of_model(
    study: Study, model: str, ratios: Mapping[str, float], assumed: Assumptions
) -> list[str]:
    """Memory by part, units and seconds of a step, hours of a job."""
    known = [name for name in study.params.models if name in published_architectures()]
    if model not in known:
        raise ConfigError(
            f"{model!r} is none of the paper's models in params.yaml. Allowed: {', '.join(known)}."
            "\nHint: without --model the plan lists every model of the study."
        )
    work, shape = model_workload(study, model, assumed), architecture(model)
    request = work.gpu_requests["train"]
    units = {
        name: hours_and_disk.training_update_units(shape, one)
        for name, one in work.trainings.items()
    }
    seconds = {
        name: hours_and_disk.step_seconds(shape, one, request, assumed)
        for name, one in work.trainings.items()
    }
    memory = {
        name: [
            parts_of(shape, one, request, assumed)
            for parts_of in (
                training_memory.training_gpu_memory,
                training_memory.inference_gpu_memory,
            )
        ]
        for name, one in work.trainings.items()
    }
    largest = max(memory, key=lambda name: sum(map(training_memory.total_bytes, memory[name])))
    fewest = training_memory.gpus_needed(shape, work.trainings[largest], request.inference, assumed)
    parts = [
        f"# {shape.label} in study {study.name}: N = {shape.parameters / 1e9:.3f} billion",
        f"A training asks for {request.gpus} GPUs: {request.trainers} train, {request.inference}"
        f" generate and score the anchor. Its state needs {fewest} or more to train.",
    ]
    gpus = {"training": request.trainers, "inference": request.inference}
    for (role, n), parts_of_gpu in zip(gpus.items(), memory[largest], strict=True):
        if n:
            title = f"One of {n} {role} GPUs"
            parts.append(plan_tables.gpu_memory_table(title, parts_of_gpu, assumed))
    kfac = study.section("training", model)["optimiser"]["kfac"]
    parts.append(plan_tables.training_state_table(model, kfac["blocks"], kfac["storage"]))
    parts.append(plan_tables.update_units_table(model, units, seconds))
    if model in study.models:
        parts.append(plan_tables.job_table(hours_and_disk.plan_rows(work, ratios, assumed)))
    else:
        homes = [name for name, s in study.params.studies.items() if model in s.models]
        parts.append(f"Study {study.name} does not run it; {', '.join(homes) or 'none'} does.")
    return [*parts, plan_tables.assumption_table(assumed, ratios)]


def model_workload(study: Study, model: str, assumed: Assumptions) -> ModelWorkload:
    """What the jobs of a model do, out of the resolved configuration."""
    pool, evaluation = study.section("pool", model), study.section("evaluation", model)
    recipe, data = study.section("training", model), study.section("data", model)
    counts, resources = job_counts(study), study.params.resources_of(model)
    problems = data["select_train"] if data["purpose"] == "selection" else data["train"]
    trainings = {variant: study.training(model, variant) for variant in study.trained}
    # Variants of equal settings are one run; an early stop's weights and its snapshot of the longer
    # run are one file.
    runs = {json.dumps(one, sort_keys=True): one for one in trainings.values()}
    snapshots = [len(one["snapshots"]) for one in runs.values()]
    jobs = {rule: resources.job(rule) for rule in (*counts, "train")}
    return ModelWorkload(
        model=model,
        jobs=counts,
        gpu_requests={
            rule: GpuRequest(job.gpus, getattr(job, "inference_gpus", 0))
            for rule, job in jobs.items()
        },
        pool=SamplingWorkload(problems * pool["rollouts"], pool["response_tokens"]),
        evaluation=SamplingWorkload(
            _evaluated_samples(data, evaluation), evaluation["response_tokens"]
        ),
        trainings={
            variant: _training(settings, assumed)
            for variant, settings in trainings.items()
            if variant not in study.early_stops
        },
        states=SamplingWorkload(problems, recipe["response_tokens"]),
        checkpoints=max(snapshots) + 2,  # and pi_0 and the end
        weights=counts["base"] + len(study.seeds) * sum(kept + 1 for kept in snapshots),
    )


def _evaluated_samples(data: Mapping[str, Any], evaluation: Mapping[str, Any]) -> int:
    """Samples of an evaluation."""
    if data["purpose"] != "study":
        return data["select_validation"] * evaluation["samples"]
    each = data["test_per_benchmark"]
    ood = sum(BENCHMARKS.values()) if each is None else each * len(BENCHMARKS)
    return data["test_id"] * evaluation["samples"] + ood * evaluation["coverage"]


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


def _paper_workload(study: Study, assumed: Assumptions) -> ModelWorkload:
    """The paper's protocol at 8B, whatever the studies of params.yaml change in it."""
    protocol = StudySchema(
        about="the protocol",
        kind="main",
        models=[hours_and_disk.REFERENCE],
        methods=[BASELINE],
        seeds=[0],
        outputs=["claims"],
    )
    params = study.params.model_copy(update={"studies": {"protocol": protocol}})
    return model_workload(resolve(params, "protocol"), hours_and_disk.REFERENCE, assumed)


if __name__ == "__main__":
    begin(main)
