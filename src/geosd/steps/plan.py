"""Say what a study will cost before anything is spent: jobs, GPUs, memory, hours, disk.

Nothing is run, fetched or written, and no data need be there.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import tyro

from geosd.claims.published import gpu_hours
from geosd.config import ConfigError, Study, load, resolve
from geosd.config.params_schema import StudySchema
from geosd.config.rule_settings import job_counts
from geosd.costs.assumptions import DEFAULTS, Assumptions
from geosd.costs.gpu_memory import TrainingLayout, gpus_needed, inference_gpu, training_gpu
from geosd.costs.roofline import TrainingWorkload, step_seconds, update_units
from geosd.costs.study_plan import (
    BENCHMARKS,
    REFERENCE,
    GpuRequest,
    ModelWorkload,
    SamplingWorkload,
    disk,
    paper_hours_ratio,
    plan_rows,
    update_size,
)
from geosd.models.published_architectures import architecture, published_architectures
from geosd.objectives.objective import build
from geosd.reporting import plan_tables
from geosd.steps import begin

BASELINE = "fwdkl"
"""The variant whose hours at 8B stand for the paper's "single 8B baseline method"."""


def main(
    study: str | None = None,
    model: str | None = None,
    params: Path = Path("params.yaml"),
    assumed: Annotated[Assumptions, tyro.conf.arg(name="")] = DEFAULTS,
) -> None:
    """Print the plan of a study, or one of its models in detail.

    Args:
        study: Name of the study; default: the one that params.yaml names.
        model: Name of one of the paper's models: its memory, units, and seconds of a step.
        params: The configuration.
        assumed: What is not known before a run.
    """
    try:
        resolved = resolve(load(params), study)
        paper = _paper_workload(resolved, assumed)
        times = paper_hours_ratio(paper, BASELINE, gpu_hours(), assumed)
        if model is None:
            print(_of_study(resolved, times, assumed))
        else:
            print(_of_model(resolved, model, times, assumed))
    except ValueError as error:  # a name, a share, or a model that fits nowhere
        sys.exit(str(error))


def _of_study(study: Study, times: Mapping[str, float], assumed: Assumptions) -> str:
    """A line for each model and rule; of models without a GPU, as the miniature's, a mere count."""
    works = [_workload(study, model, assumed) for model in study.models]
    found = [line for work in works for line in plan_rows(work, times, assumed)]
    once = f"Once each, without GPU: {', '.join(['data', 'analyse', *study.outputs])}."
    parts = [f"# Study {study.name}: {study.params.studies[study.name].about}"]
    parts += [plan_tables.study_plan(found), once]
    if any(line.gpus for line in found):
        on_disk = [disk(work, assumed) for work in works]
        parts += [plan_tables.disk_use(on_disk), plan_tables.assumptions(assumed, times)]
    return "\n\n".join(parts)


def _of_model(study: Study, model: str, times: Mapping[str, float], assumed: Assumptions) -> str:
    """Memory by part, units and seconds of a step, hours of a job."""
    if model not in study.params.models or model not in published_architectures():
        known = [name for name in study.params.models if name in published_architectures()]
        raise ConfigError(
            f"{model!r} is none of the paper's models in params.yaml. Allowed: {', '.join(known)}."
            "\nHint: without --model the plan lists every model of the study."
        )
    work, shape = _workload(study, model, assumed), architecture(model)
    asked = work.gpu_requests["train"]
    trainers = asked.gpus - asked.inference
    layout = _largest_layout(study, model, work, trainers, asked.inference)
    fewest = gpus_needed(shape, layout, assumed)
    methods = {name: update_units(shape, one) for name, one in work.trainings.items()}
    seconds = {
        name: step_seconds(shape, one, trainers, asked.inference, assumed)
        for name, one in work.trainings.items()
    }
    kfac = study.section("training", model)["optimiser"]["kfac"]
    parts = [
        f"# {shape.label} in study {study.name}: N = {shape.parameters / 1e9:.3f} billion",
        f"A training asks for {asked.gpus} GPUs: {trainers} train, {asked.inference} generate and"
        f" score the anchor. Its state needs {fewest} or more to train.",
        plan_tables.gpu_memory(
            f"One of {trainers} training GPUs", training_gpu(shape, layout, assumed), assumed
        ),
    ]
    if asked.inference:
        title = f"One of {asked.inference} inference GPUs"
        parts.append(plan_tables.gpu_memory(title, inference_gpu(shape, layout, assumed), assumed))
    parts += [
        plan_tables.training_state(model, kfac["blocks"], kfac["storage"]),
        plan_tables.update_units(model, methods, seconds),
    ]
    if model in study.models:
        parts.append(plan_tables.study_plan(plan_rows(work, times, assumed)))
    else:
        homes = [name for name, s in study.params.studies.items() if model in s.models]
        parts.append(f"Study {study.name} does not run it; {', '.join(homes) or 'none'} does.")
    return "\n\n".join([*parts, plan_tables.assumptions(assumed, times)])


def _workload(study: Study, model: str, assumed: Assumptions) -> ModelWorkload:
    """What the jobs of a model do, out of the resolved configuration."""
    resources = study.params.resources_of(model)
    pool, evaluation = study.section("pool", model), study.section("evaluation", model)
    recipe, data = study.section("training", model), study.section("data", model)
    counts = job_counts(study)
    problems = data["select_train"] if data["purpose"] == "selection" else data["train"]
    trainings = {
        variant: _training(study.training(model, variant), assumed)
        for variant in study.trained
        if variant not in study.early_stops
    }
    asked = {
        rule: GpuRequest(
            resources.job(rule).gpus, getattr(resources.job(rule), "inference_gpus", 0)
        )
        for rule in (*counts, "train")
    }
    # An early stop's weights and its snapshot of the longer run are one file.
    snapshots = [len(study.training(model, variant)["snapshots"]) for variant in study.trained]
    return ModelWorkload(
        model=model,
        jobs=counts,
        gpu_requests=asked,
        pool=SamplingWorkload(problems * pool["rollouts"], pool["response_tokens"]),
        evaluation=SamplingWorkload(
            _evaluated_samples(data, evaluation), evaluation["response_tokens"]
        ),
        trainings=trainings,
        states=SamplingWorkload(problems, recipe["response_tokens"]),
        checkpoints=max(snapshots) + 2,  # and pi_0 and the end
        weights=1 + len(study.seeds) * sum(kept + 1 for kept in snapshots),
    )


def _evaluated_samples(data: Mapping[str, Any], evaluation: Mapping[str, Any]) -> int:
    """Samples of an evaluation."""
    if data["purpose"] == "selection":
        return data["select_validation"] * evaluation["samples"]
    each = data["test_per_benchmark"]
    whole = sum(BENCHMARKS.values()) if each is None else each * len(BENCHMARKS)
    return data["test_id"] * evaluation["samples"] + whole * evaluation["coverage"]


def _training(settings: Mapping[str, Any], assumed: Assumptions) -> TrainingWorkload:
    objective, kfac = build(**settings["objective"]), settings["optimiser"]["kfac"]
    sequences = settings["group"] if objective.rollouts == "group" else settings["problems"]
    natural = settings["optimiser"]["rule"] == "kfac"
    return TrainingWorkload(
        steps=settings["steps"],
        update=update_size(sequences, settings["response_tokens"], assumed),
        cap=settings["response_tokens"],
        generates=objective.rollouts != "solution",
        needs=objective.needs,
        kfac=(kfac["blocks"], kfac["subsample"]) if natural else None,
        recompute=settings["recompute"],
    )


def _largest_layout(
    study: Study, model: str, work: ModelWorkload, trainers: int, inference: int
) -> TrainingLayout:
    """The layout of the variant that holds most: with K-FAC, and with the most models beside it."""
    recipe = study.section("training", model)
    kfac, all_ = recipe["optimiser"]["kfac"], work.trainings.values()
    return TrainingLayout(
        training=trainers,
        inference=inference,
        blocks=kfac["blocks"] if any(one.kfac for one in all_) else None,
        storage=kfac["storage"],
        anchor=any("anchor" in one.needs for one in all_),
        sequences=max(one.update.sequences for one in all_),
        response=recipe["response_tokens"],
        chunk=recipe["chunk"],
        models=1 + max(len(one.needs) for one in all_),
        microbatch=recipe["microbatch"] or recipe["problems"],
        recompute=recipe["recompute"],
    )


def _paper_workload(study: Study, assumed: Assumptions) -> ModelWorkload:
    """The paper's protocol at 8B, whatever the studies of params.yaml change in it."""
    bare = StudySchema(
        about="the protocol",
        kind="main",
        models=[REFERENCE],
        methods=[BASELINE],
        seeds=[0],
        outputs=["claims"],
    )
    params = study.params.model_copy(update={"studies": {"protocol": bare}})
    return _workload(resolve(params, "protocol"), REFERENCE, assumed)


if __name__ == "__main__":
    begin(main)
