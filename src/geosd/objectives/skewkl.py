"""SkewKL: DistiLLM's KL against a mixture."""

from dataclasses import dataclass
from typing import Annotated, Literal

from torch import Tensor

from geosd.geometry import skew_kl
from geosd.objectives.hyperparameters import Bounds
from geosd.objectives.objective import Objective, ObjectiveStates, register_objective


@register_objective("skewkl")
@dataclass(frozen=True)
class SkewKL(Objective):
    """forward: KL(q||alpha q + (1-alpha) p); reverse: KL(p||alpha p + (1-alpha) q).

    Source: Ko et al., DistiLLM (arXiv 2402.03898); the paper (app:exp-baselines) selects alpha = .1
    and names no direction. Our reading: forward, by its name and its place by FwdKL; DistiLLM-2
    takes the reverse one on student-generated text.
    """

    alpha: Annotated[float, Bounds(ge=0, le=0.999)] = 0.1
    """Share of the first argument in the mixture; the paper selects 0.1. 0 is plain KL."""
    direction: Literal["forward", "reverse"] = "forward"
    """Which of the two; "forward" is our reading of the paper."""

    def per_position(self, states: ObjectiveStates) -> dict[str, Tensor]:
        """Skew KL at each position."""
        return {
            "loss": skew_kl(
                states.student, states.teacher, self.alpha, self.direction, normalised=True
            )
        }
