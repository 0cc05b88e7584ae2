"""RevKL: MiniLLM's divergence in its analytic per-token form."""

from dataclasses import dataclass

from torch import Tensor

from geosd.geometry import reverse_kl
from geosd.objectives.objective import Objective, ObjectiveStates, register_objective


@register_objective("revkl")
@dataclass(frozen=True)
class RevKL(Objective):
    """KL(p||q) = sum_i p_i log(p_i/q_i) at every position, q without gradient.

    Source: the paper, equation (reverse-kl) and appendix (app:exp-baselines); Gu et al. (MiniLLM).
    Its long-term policy-gradient term, mixed sampling and pre-training loss are dropped, as the
    paper's "analytic per-token form" says.
    """

    def per_position(self, states: ObjectiveStates) -> dict[str, Tensor]:
        """Reverse KL at each position."""
        return {"loss": reverse_kl(states.student, states.teacher, normalised=True)}
