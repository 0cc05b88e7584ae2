"""FwdKL: the canonical loss of privileged on-policy self-distillation."""

from dataclasses import dataclass

from torch import Tensor

from geosd.geometry import forward_kl
from geosd.objectives.objective import Objective, ObjectiveStates, register_objective


@register_objective("fwdkl")
@dataclass(frozen=True)
class FwdKL(Objective):
    """KL(q||p) = sum_i q_i log(q_i/p_i) at every position, q without gradient.

    Source: the paper, equation (forward-kl) and appendix (app:exp-baselines); Zhao et al. (OPSD).
    The paper gives it no hyperparameter, so the clamp and the temperature of the released OPSD
    recipe are absent.
    """

    def per_position(self, states: ObjectiveStates) -> dict[str, Tensor]:
        """Forward KL at each position."""
        return {"loss": forward_kl(states.student, states.teacher, normalised=True)}
