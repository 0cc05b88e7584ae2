"""What a run is made of."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import Literal, Protocol

from torch import Tensor, nn

from geosd.objectives.objective import Objective
from geosd.objectives.reduce import LossMean
from geosd.optim.update import Update
from geosd.problems.encoding import Encoding
from geosd.rollout.sampler import Sampler
from geosd.training.copies import Copies
from geosd.training.fsdp import unsharded
from geosd.training.problem_sampler import Draws
from geosd.training.processes import Ranks
from geosd.training.rollouts import Gathering, Grade, Rollouts, gather

Seen = dict[str, list[Tensor]]
"""Model -> for each response of the step, its hidden states at that response [T, D]."""


@dataclass(frozen=True)
class Recipe:
    """What the loop itself needs to know.

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


class Experience(Protocol):
    """Where a step's responses come from."""

    def collect(self, step: int, measured: bool) -> tuple[Rollouts, Seen]:
        """The responses of a step, the same on every rank, and what other workers saw in them.

        Args:
            step: The step, from 0.
            measured: Whether the log asks for all models' views, not only the objective's.
        """
        ...


@dataclass(frozen=True)
class Here:
    """Responses sampled where the student is trained: by the first rank, from the whole student.

    Attributes:
        student: The model that is trained.
        gathering: Where responses come from.
        draws: Problems and solutions by step.
        encoding: Text to ids and back.
        sampler: Samples the student as it is.
        grade: Decides whether an answer is right.
        ranks: Of the training.
    """

    student: nn.Module
    gathering: Gathering
    draws: Draws
    encoding: Encoding
    sampler: Sampler
    grade: Grade
    ranks: Ranks = field(default_factory=Ranks)

    def collect(self, step: int, measured: bool) -> tuple[Rollouts, Seen]:
        """See `Experience.collect`."""
        how = (self.gathering, self.draws, self.encoding, self.sampler, self.grade)
        sampled = self.gathering.source != "solution"
        with unsharded(self.student) if sampled else nullcontext():
            return self.ranks.told(lambda: gather(*how, step)), {}


@dataclass(frozen=True)
class Run:
    """Everything a run is made of; the loop only puts the parts to work.

    Attributes:
        student: The model that is trained, in place.
        objective: The method.
        update: Its update rule, over the student's parameters.
        copies: Anchor, teacher and pi_0.
        draws: Problems and solutions by step.
        experience: Where responses come from.
        encoding: Text to ids and back.
        seed: The run's seed.
        ranks: The processes that train the student together.
    """

    student: nn.Module
    objective: Objective
    update: Update
    copies: Copies
    draws: Draws
    experience: Experience
    encoding: Encoding
    seed: int
    ranks: Ranks = field(default_factory=Ranks)
