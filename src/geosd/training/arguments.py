"""The recipe of a training run, named and explained as in the settings (docs/configuration.md)."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from geosd.objectives.reduce import LossMean


@dataclass(frozen=True)
class LoopArguments:
    """The part of the recipe that the loop reads."""

    steps: int
    learning_rate: float
    warmup: int
    top_k: int | None
    loss_mean: LossMean
    save_every: int
    max_skipped_steps: int
    diagnose_every: int
    final_rollouts: int
    chunk: int
    microbatch: int | None


@dataclass(frozen=True)
class OptimiserArguments:
    """The update rule: `kfac` are keyword arguments of `KFAC`, which other rules do without."""

    rule: Literal["adamw", "kfac", "muon"]
    inner: Literal["adamw", "plain"] | None
    kfac: Mapping[str, Any] | None


@dataclass(frozen=True)
class LoraArguments:
    """The adapters that train in place of the weights; see `add_adapter`."""

    rank: int
    alpha: float
    targets: tuple[str, ...]


@dataclass(frozen=True)
class TrainingArguments(LoopArguments):
    """The whole recipe.

    `objective` is the name of one with its hyperparameters; `rollout` is the section of that name.
    `source`, `thinking`, `wording` and `date` are of the section `data`.
    """

    objective: Mapping[str, Any]
    optimiser: OptimiserArguments
    betas: tuple[float, float]
    weight_decay: float
    precision: Literal["bfloat16", "float32"]
    recompute: bool
    problems: int
    group: int
    temperature: float
    response_tokens: int
    privilege: float
    anchor_every: int
    teacher: Literal["live", "fixed", "delayed", "average", "solution_only", "purified"]
    teacher_decay: float
    source: str
    thinking: bool | Mapping[str, bool]
    rollout: Mapping[str, Any]
    wording: Mapping[str, Any] | None = None
    date: str | None = None
    storage: Literal["bfloat16", "float32"] = "float32"
    lora: LoraArguments | None = None


def training_arguments(settings: Mapping[str, Any]) -> TrainingArguments:
    """The recipe of a run from its settings, which are plain values.

    Raises:
        TypeError: A setting is missing, or there is one that no training reads.
    """
    first, second = settings["betas"]
    lora = settings.get("lora")
    typed = {
        "betas": (first, second),
        "optimiser": OptimiserArguments(**settings["optimiser"]),
        "lora": LoraArguments(**lora) if lora else None,
    }
    return TrainingArguments(**{**settings, **typed})
