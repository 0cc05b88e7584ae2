"""JSD: GKD's generalised Jensen-Shannon divergence."""

from dataclasses import dataclass
from typing import Annotated

from torch import Tensor

from geosd.geometry import jsd
from geosd.objectives.hyperparameters import Bounds
from geosd.objectives.objective import Objective, ObjectiveStates, register_objective


@register_objective("jsd")
@dataclass(frozen=True)
class JSD(Objective):
    """beta KL(q||M) + (1-beta) KL(p||M) with M = beta q + (1-beta) p, q without gradient.

    Source: Agarwal et al., GKD (arXiv 2306.13649), equation 1; the paper (app:exp-baselines)
    selects beta = .5. M carries the student's gradient, as in GKD.
    """

    beta: Annotated[float, Bounds(ge=0.001, le=0.999)] = 0.5
    """Share of the teacher in M; the paper selects 0.5. At both ends the divergence is zero: fwdkl
    and revkl have their directions."""

    def per_position(self, states: ObjectiveStates) -> dict[str, Tensor]:
        """Jensen-Shannon divergence at each position."""
        return {"loss": jsd(states.student, states.teacher, self.beta, normalised=True)}
