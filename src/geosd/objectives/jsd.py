"""JSD: GKD's generalised Jensen-Shannon divergence."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from geosd.geometry import jsd
from geosd.objectives import checks
from geosd.objectives.objective import Objective, States, register


@register("jsd")
@dataclass(frozen=True)
class JSD(Objective):
    """beta KL(q||M) + (1-beta) KL(p||M) with M = beta q + (1-beta) p, q without gradient.

    Source: Agarwal et al., GKD (arXiv 2306.13649), equation 1; the paper (app:exp-baselines)
    selects beta = .5. M carries the student's gradient, as in GKD.

    Attributes:
        beta: Share of the teacher in M, in (0, 1).
    """

    beta: float = 0.5

    def __post_init__(self) -> None:
        """Check the hyperparameters."""
        checks.number(
            "jsd.beta", self.beta, 0, 1, open_low=True, open_high=True,
            hint="the divergence is zero at both ends; use fwdkl or revkl for their directions.",
        )  # fmt: skip

    def local(self, states: States) -> dict[str, Tensor]:
        """Jensen-Shannon divergence at each position."""
        return {"loss": jsd(states.student, states.teacher, self.beta)}
