"""OPSD: privileged on-policy self-distillation as published, with a clip and a temperature."""

from dataclasses import dataclass
from math import inf
from typing import Annotated

from torch import Tensor

from geosd.geometry.simplex import floored, log_distributions
from geosd.objectives.hyperparameters import Bounds
from geosd.objectives.objective import Objective, ObjectiveStates, register_objective


@register_objective("opsd")
@dataclass(frozen=True)
class OPSD(Objective):
    """sum_i min(q_i log(q_i/p_i), clip) at every position, q without gradient.

    p is the student after the question, q the teacher after question and solution, both softmax
    (z/T), at the tokens of the student's response. The mean is over these and then over responses,
    as in the source's equation; its code takes it over all tokens of a microbatch. A clipped token
    pulls no more, the others do: the loss may be negative. At clip = inf and T = 1 it is FwdKL.

    Source: Zhao et al., "Self-Distilled Reasoner" (arXiv 2601.18734, version 3), values from its
    code. Its teacher is fixed at pi_0 (`training.teacher`), its student does not think
    (`data.thinking`).
    """

    clip: Annotated[float, Bounds(ge=1e-4, le=inf)] = 0.05
    """Most that one token of the vocabulary adds at a position, in nats; the source has 0.05 for
    Qwen3-1.7B and 4B, 0.06 for 8B. Infinity removes it."""
    temperature: Annotated[float, Bounds(ge=0.01, le=5)] = 1.1
    """T, in the source that of the rollouts too."""

    def per_position(self, states: ObjectiveStates) -> dict[str, Tensor]:
        """Clipped forward KL at each position."""
        t = self.temperature
        log_p, log_q = log_distributions(states.student / t, states.teacher / t)
        # The terms of geosd.geometry.forward_kl.
        terms = log_q.exp() * (floored(log_q) - floored(log_p))
        return {"loss": terms.clamp(max=self.clip).sum(-1)}
