"""GeoSD: overlap-aware distillation with control of the drift."""

from dataclasses import dataclass
from typing import Annotated, Literal

from torch import Tensor

from geosd.geometry import fisher_rao_squared, forward_kl, hellinger, jsd, reverse_kl
from geosd.objectives.hyperparameters import Bounds, OnlyWith
from geosd.objectives.objective import Objective, ObjectiveStates, register_objective

PULLS = {"hellinger": hellinger, "fwdkl": forward_kl, "revkl": reverse_kl}
"""The divergences without a hyperparameter, by their names in `GeoSD.divergence`.

Near agreement, with Q = sum_i (dp_i)^2 / p_i, D_H and JSD (beta = 1/2) are Q/8, both directions of
KL are Q/2, and d_FR^2 is Q. So equal lambda is not equal strength: lambda d_FR^2 has 8 lambda times
the curvature of D_H and of JSD, and 2 lambda times that of KL.
"""


@register_objective("geosd")
@dataclass(frozen=True)
class GeoSD(Objective):
    """D_H(p, q) + lambda d_FR^2(p, anchor) at every position, q and anchor without gradient.

    The first term, the chord, is the teacher's pull: token i weighs 1/2 sqrt(p_i q_i). The second,
    the arc, is the motion since the checkpoint theta_ckpt. The step log shows both, as "distil" and
    "prox" (without lambda).

    With Delta = theta - theta_ckpt and F the Fisher information at the checkpoint, averaged over
    the states, "prox" is Delta^T F Delta up to third order and its gradient 2 F Delta.

    Source: the paper, equations (hellinger), (distillation-loss), (prox-term), (full-loss) and
    (prox-local), and section "Natural-gradient update and the checkpoint pullback" (app:pullback).
    """

    divergence: Literal["hellinger", "jsd", "fwdkl", "revkl"] = "hellinger"
    """The teacher's pull: "hellinger" is the paper's method, "jsd" its ablation; with the two
    directions of KL the proximal term is held against the pull that it should tame."""
    beta: Annotated[float, Bounds(ge=0.001, le=0.999), OnlyWith(divergence="jsd")] = 0.5
    """Share of the teacher in the mixture of "jsd"; the paper's value is 0.5."""
    drift_penalty: Annotated[float, Bounds(ge=0, le=1000)] = 1.0
    """lambda; the paper selects 1.0. 0 removes the proximal term, and no anchor is needed."""

    @property
    def needs(self) -> frozenset[str]:
        """The teacher, and the anchor where drift is penalised."""
        return frozenset({"teacher", "anchor"} if self.drift_penalty else {"teacher"})

    def per_position(self, states: ObjectiveStates) -> dict[str, Tensor]:
        """Loss, and its two parts, at each position."""
        if self.divergence == "jsd":
            distil = jsd(states.student, states.teacher, self.beta, normalised=True)
        else:
            distil = PULLS[self.divergence](states.student, states.teacher, normalised=True)
        if not self.drift_penalty:
            return {"loss": distil, "distil": distil}
        prox = fisher_rao_squared(states.student, states.anchor, normalised=True)
        return {"loss": distil + self.drift_penalty * prox, "distil": distil, "prox": prox}
