"""The numbers of a training run."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from geosd.objectives.reduce import LossMean


@dataclass(frozen=True)
class TrainingArguments:
    """The numbers of a training run; named and explained as in the settings."""

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


def training_arguments(settings: Mapping[str, Any]) -> TrainingArguments:
    """Training arguments from the settings of a run."""
    names = [each.name for each in fields(TrainingArguments)]
    return TrainingArguments(**{name: settings[name] for name in names})
