"""What a training run is made of: its parts, and the arguments of the loop."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from torch import nn

from geosd.objectives.objective import Objective
from geosd.objectives.reduce import LossMean
from geosd.optim.update import UpdateRule
from geosd.problems.encoding import Encoding
from geosd.training.problem_sampler import ProblemSampler
from geosd.training.processes import Ranks
from geosd.training.reference_models import ReferenceHeads, ReferenceModels
from geosd.training.rollouts import RolloutSource


@dataclass(frozen=True)
class TrainingArguments:
    """Numbers that the loop reads.

    Attributes:
        steps: Updates in all.
        learning_rate: After warm-up.
        warmup_steps: Steps over which the learning rate grows linearly from 0.
        top_k: K of the union support.
        loss_mean: "sequence" is the paper's 1/T inside the expectation over trajectories; "token"
            weighs every response token alike.
        save_every: Steps between saved states.
        diagnose_every: Steps between measurements that cost extra forward passes.
        chunk: Response positions whose logits are held at once.
        microbatch: Responses that a rank takes through the models together; None takes all of its.
        precision: Of forward and backward passes; the weights, their gradients and everything the
            optimiser keeps are float32 either way (paper, Table hyperparameters).
    """

    steps: int
    learning_rate: float
    warmup_steps: int
    top_k: int
    loss_mean: LossMean
    save_every: int
    diagnose_every: int
    chunk: int
    microbatch: int | None
    precision: Literal["bfloat16", "float32"]


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
