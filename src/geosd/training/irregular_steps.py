"""Steps in which something is not as it should be: defined, counted, and the end of a bad run.

    loss, gradient or factor not finite, or a    the step is skipped: weights, moments and factors
      factor not invertible                      stay as they are; the log says `update/skipped`
    float32 too coarse for a factor's block      inverted in float64: `curvature/float64_blocks`
    every response cut by the cap                a step like any other: its states were visited
    every response right, or every one wrong     no gradient in GRPO, else a step like any other
    a response that is its end alone             one position, as the end of any other is

A response has one token or more (`Rollouts`). A run that skips more steps than it allows ends.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

import pandas as pd
import torch
from torch import Tensor

from geosd.optim.update import UpdateRule

logger = logging.getLogger(__name__)


class TrainingDivergedError(ValueError):
    """A run has skipped more steps than it allows."""


@dataclass
class SkippedSteps:
    """The steps of a run that made no update.

    Attributes:
        count: How many there are.
        last: The last one, -1 before the first.
        problems: The ids of its problems.
    """

    count: int = 0
    last: int = -1
    problems: tuple[str, ...] = ()

    def update_or_skip(
        self,
        rule: UpdateRule,
        rate: float,
        loss: Tensor,
        gradient_norm: float,
        step: int,
        problems: Iterable[str],
    ) -> bool:
        """Take the update of a step if loss, gradient and factors are finite; whether it was taken.

        Every rank has the same loss and norm, and K-FAC's step fails on all ranks or on none.

        Args:
            rule: Of the run; the gradients are in place.
            rate: Learning rate of the step.
            loss: Of the whole step, a scalar.
            gradient_norm: Euclidean norm of the whole gradient.
            step: The step, from 0.
            problems: The ids of its problems.
        """
        if not (loss.isfinite() and math.isfinite(gradient_norm)):
            reason = f"the loss is {loss.item():g}, the gradient's norm {gradient_norm:g}"
        else:
            try:
                rule.step(rate)
                return True
            except (FloatingPointError, torch.linalg.LinAlgError) as error:
                reason = str(error).splitlines()[0].rstrip(".")
        rule.skip()
        self.count, self.last = self.count + 1, step
        self.problems = tuple(dict.fromkeys(problems))
        logger.warning(
            f"step {step} is skipped and changes no weight: {reason}; its problems are"
            f" {', '.join(self.problems)}"
        )
        return False

    def check(self, allowed: int, weights: str) -> None:
        """End a run that has skipped too many steps.

        Args:
            allowed: How many steps the run may skip.
            weights: Where the last good weights lie.

        Raises:
            TrainingDivergedError: It has skipped more.
        """
        if self.count > allowed:
            raise TrainingDivergedError(
                f"{self.count} steps had no finite loss, gradient or factor, and {allowed} may be"
                f" skipped; the last is step {self.last}, on problems {', '.join(self.problems)}."
                f" The last good weights are in {weights}.\nHint: lower training.learning_rate or"
                " raise the damping; training.max_skipped_steps says how many steps may be skipped."
            )

    def state_dict(self) -> dict[str, Any]:
        """Plain values."""
        return asdict(self)

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from `state`."""
        self.count, self.last = state["count"], state["last"]
        self.problems = tuple(state["problems"])


def count_irregular_steps(log: pd.DataFrame, steps: int) -> dict[str, int]:
    """How many steps of a finished run were irregular, for its manifest.

    Args:
        log: The step log, a row for each step and one for the trained student.
        steps: Of the run.
    """
    of_steps = log.reindex(range(steps))

    def column(name: str) -> pd.Series:
        return of_steps[name] if name in of_steps else pd.Series(dtype=float)

    return {
        "skipped": int(column("update/skipped").sum()),
        "blocks in float64": int((column("curvature/float64_blocks") > 0).sum()),
        "an empty response": int((column("rollout/empty") > 0).sum()),
        "all responses truncated": int((column("rollout/truncated") == 1).sum()),
        "all responses right": int((column("rollout/accuracy") == 1).sum()),
        "all responses wrong": int((column("rollout/accuracy") == 0).sum()),
    }
