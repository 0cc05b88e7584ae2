"""Steps without a finite loss, gradient or factor: skipped, and too many of them end the run.

A skipped step leaves weights, moments and factors as they are. `geosd.scores.irregular_steps`
counts these steps, and others that are defined but not as a run should be.
"""

import logging
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

logger = logging.getLogger(__name__)


LOWER_RATE = "lower training.learning_rate or raise the damping"
LOOK_AT_OBJECTIVE = (
    "look at {objective}.per_position: the logits of all models are finite, but empty slots of the"
    " support are -inf, and -inf - -inf and 0 * -inf are NaN; take the divergences of"
    " geosd.geometry, or logarithms from geosd.geometry.floored (see ObjectiveStates)"
)


class TrainingDivergedError(ValueError):
    """A run has skipped more steps than it allows."""


@dataclass
class SkippedSteps:
    """The steps of a run that made no update: how many, the last one, and what may help."""

    count: int = 0
    last: int = -1
    problems: tuple[str, ...] = ()
    hint: str = LOWER_RATE

    def add(
        self, step: int, problems: Iterable[str], reason: str, objective: str | None = None
    ) -> None:
        """Count a step, and warn; `objective` is the class whose loss alone is not finite."""
        self.count += 1
        self.last = step
        self.problems = tuple(dict.fromkeys(problems))
        self.hint = LOOK_AT_OBJECTIVE.format(objective=objective) if objective else LOWER_RATE
        logger.warning(
            f"step {step} is skipped and changes no weight: {reason}; its problems are"
            f" {', '.join(self.problems)}.\nHint: {self.hint}."
        )

    def check(self, allowed: int, steps: int, weights: str) -> None:
        """Raise TrainingDivergedError if more than `allowed` steps, or all, were skipped."""
        allowed = min(allowed, steps - 1)
        if self.count > allowed:
            raise TrainingDivergedError(
                f"{self.count} of {steps} steps had no finite loss, gradient or factor, and"
                f" {allowed} may be skipped; the last is step {self.last}, on problems"
                f" {', '.join(self.problems)}. The last good weights are in {weights}.\nHint:"
                f" {self.hint}; training.max_skipped_steps says how many steps may be skipped."
            )

    def state_dict(self) -> dict[str, Any]:
        """Plain values."""
        return asdict(self)

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from `state`."""
        self.count, self.last = state["count"], state["last"]
        self.problems, self.hint = tuple(state["problems"]), state["hint"]
