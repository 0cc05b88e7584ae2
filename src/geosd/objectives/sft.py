"""SFT: off-policy cross-entropy on verified solution traces."""

from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor

from geosd.objectives.objective import (
    Objective,
    ObjectiveStates,
    ResponseSource,
    register_objective,
)


@register_objective("sft")
@dataclass(frozen=True)
class SFT(Objective):
    """-log p(s_t) of the solution's tokens, over the whole vocabulary; no teacher.

    Source: the paper, appendix (app:exp-baselines). Our reading where it is silent: one solution
    per problem and step, drawn from the pool that gives the other methods their privileged context.
    """

    rollouts: ClassVar[ResponseSource] = "solution"
    needs: ClassVar[frozenset[str]] = frozenset()

    def per_position(self, states: ObjectiveStates) -> dict[str, Tensor]:
        """Cross-entropy at each position."""
        return {"loss": -states.sampled}
