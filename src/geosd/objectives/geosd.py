"""GeoSD: overlap-aware distillation with control of the drift."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from torch import Tensor

from geosd.geometry import fisher_rao_squared, hellinger, jsd
from geosd.objectives import checks
from geosd.objectives.objective import Objective, States, register


@register("geosd")
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

    Attributes:
        divergence: The teacher's pull: "hellinger" (the method) or "jsd" (the ablation).
        beta: Share of the teacher in the mixture of "jsd".
        drift_penalty: lambda >= 0; at 0 no anchor is needed.
    """

    divergence: Literal["hellinger", "jsd"] = "hellinger"
    beta: float = 0.5
    drift_penalty: float = 1.0

    def __post_init__(self) -> None:
        """Check the hyperparameters."""
        checks.choice(
            "geosd.divergence", self.divergence, ("hellinger", "jsd"),
            hint="'hellinger' is the paper's method.",
        )  # fmt: skip
        checks.number(
            "geosd.beta", self.beta, 0, 1, open_low=True, open_high=True,
            hint="only divergence 'jsd' reads it; the paper's value is 0.5.",
        )  # fmt: skip
        checks.number(
            "geosd.drift_penalty", self.drift_penalty, 0, float("inf"), open_high=True,
            hint="the paper selects 1.0; 0 removes the proximal term.",
        )  # fmt: skip

    @property
    def needs(self) -> frozenset[str]:
        """The teacher, and the anchor where drift is penalised."""
        return frozenset({"teacher", "anchor"} if self.drift_penalty else {"teacher"})

    def local(self, states: States) -> dict[str, Tensor]:
        """Loss, and its two parts, at each position."""
        if self.divergence == "jsd":
            distil = jsd(states.student, states.teacher, self.beta)
        else:
            distil = hellinger(states.student, states.teacher)
        if not self.drift_penalty:
            return {"loss": distil, "distil": distil}
        prox = fisher_rao_squared(states.student, states.anchor)
        return {"loss": distil + self.drift_penalty * prox, "distil": distil, "prox": prox}
