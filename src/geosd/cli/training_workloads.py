"""Planned work of a training, and the engine's share of the GPU that does all of one."""

from collections.abc import Mapping
from typing import Any

from geosd.costs.assumptions import DEFAULTS, Assumptions
from geosd.costs.gpu_memory import engine_share
from geosd.costs.update_operations import UpdateOperationsSize
from geosd.costs.workload import KfacWorkload, LoraWorkload, TrainingWorkload
from geosd.models.architectures import architecture, published_architectures
from geosd.objectives.objective import build_objective


def training_workload_of_settings(
    settings: Mapping[str, Any], assumed: Assumptions
) -> TrainingWorkload:
    """The parts of one training, from its settings."""
    lora = settings.get("lora")
    objective, kfac = build_objective(**settings["objective"]), settings["optimiser"]["kfac"]
    cap = settings["response_tokens"]
    sequences = settings["group"] if objective.rollouts == "group" else settings["problems"]
    rule = settings["optimiser"]["rule"]
    natural = rule == "kfac"
    return TrainingWorkload(
        steps=settings["steps"],
        update=UpdateOperationsSize(sequences, round(assumed.length * cap)),
        cap=cap,
        generates=objective.rollouts != "solution",
        needs=objective.needs,
        kfac=KfacWorkload(kfac["blocks"], kfac["subsample"], kfac["storage"]) if natural else None,
        recompute=settings["recompute"],
        chunk=settings["chunk"],
        microbatch=settings["microbatch"] or settings["problems"],
        lora=LoraWorkload(lora["rank"], tuple(lora["targets"])) if lora else None,
        muon=rule == "muon",
        purified=settings["teacher"] == "purified",
        whole_vocabulary=settings["top_k"] is None,
    )


def training_workload_share(settings: Mapping[str, Any], model: str, card: float) -> dict[str, Any]:
    """A training's settings for one GPU of `card` bytes that trains, samples and scores.

    `rollout.memory` is at most the share that the plan leaves to vLLM. Of models whose sizes are
    not known it stays as it is, and so does another engine's.

    Raises:
        ValueError: The training does not fit the GPU.
    """
    rollout = settings["rollout"]
    if rollout["engine"] != "vllm" or model not in published_architectures():
        return dict(settings)
    workload = training_workload_of_settings(settings, DEFAULTS)
    share = engine_share(architecture(model), workload, DEFAULTS, card)
    return {**settings, "rollout": {**rollout, "memory": min(rollout["memory"], share)}}
