"""TIP: train on the positions that inform."""

import math
from dataclasses import dataclass
from typing import Annotated, Literal

import torch
from torch import Tensor

from geosd.geometry import entropy, forward_kl, reverse_kl
from geosd.objectives.hyperparameters import Bounds, OnlyWith
from geosd.objectives.objective import (
    Objective,
    ObjectiveBatch,
    ObjectiveStates,
    ObjectiveTerms,
    register_objective,
)


@register_objective("tip")
@dataclass(frozen=True)
class TIP(Objective):
    """FwdKL on the positions of highest score in student entropy and teacher mismatch.

    h_t = H(p_t)/log V, clipped at its 98th percentile over the step, and d_t = KL(p_t||q_t), each
    then scaled to [0, 1] by its least and greatest value of the step; score
        s_t = omega h_t + (1 - omega) d_t            (modes "select" and "reweight")
        s_t = h_t + d_t - h_t d_t                    (mode "soft_or", the original's)
    The ceil(r m) positions of highest score are kept of a response of m; ties go to the earlier
    position. "select" and "soft_or" weigh the kept alike, "reweight" by s_t over its mean on the
    kept ones of the response. At every kept position the loss is KL(q||p).

    Source: Xu et al. (arXiv 2604.14084) for h, d, normalisation and selection. The paper
    (app:exp-baselines) replaces its reverse KL loss by FwdKL and adds omega = .5 (r = .5). Our
    reading where it is silent: omega mixes the two normalised scores; d stays the original's
    KL(p||q); entropy is that on the union support; the step's responses are the rollout batch.
    log V cancels in the scaling.
    """

    retained_fraction: Annotated[float, Bounds(ge=0.001, le=1)] = 0.5
    """r; the paper selects 0.5. At 1 "select" is FwdKL."""
    entropy_weight: Annotated[float, Bounds(ge=0, le=1), OnlyWith(mode=("select", "reweight"))] = (
        0.5
    )
    """omega; the paper selects 0.5. 1 is entropy alone, 0 mismatch alone."""
    mode: Literal["select", "reweight", "soft_or"] = "select"
    """How positions are scored and weighed; "select" is our reading of the paper."""
    entropy_clip: Annotated[float, Bounds(ge=0.01, le=1)] = 0.98
    """Quantile above which entropies count as equal; the original clips at 0.98, 1 does not."""

    def per_position(self, states: ObjectiveStates) -> dict[str, Tensor]:
        """FwdKL, and without gradient the student's entropy and the mismatch, in nats."""
        log_p, log_q = states.student, states.teacher
        return {
            "loss": forward_kl(log_p, log_q, normalised=True),
            "entropy": entropy(log_p.detach(), normalised=True),
            "mismatch": reverse_kl(log_p.detach(), log_q, normalised=True),
        }

    def combine(self, scalars: dict[str, Tensor], batch: ObjectiveBatch) -> ObjectiveTerms:
        """Score every position of the step, and weigh the best of each response."""
        loss = scalars["loss"]
        score = self.scores(scalars["entropy"], scalars["mismatch"], batch.vocabulary)
        weight = torch.zeros_like(loss).detach()
        for row in batch.sequence.unique():
            at = (batch.sequence == row).nonzero()[:, 0]
            kept = at[self._best(score[at])]
            weight[kept] = self._weights(score[kept]).to(weight.dtype)
        parts = {"entropy": scalars["entropy"].detach(), "mismatch": scalars["mismatch"].detach()}
        return ObjectiveTerms(
            loss, weight, parts, {"selected_share": (weight > 0).float().mean().item()}
        )

    @torch.no_grad()
    def scores(self, entropy_nats: Tensor, mismatch: Tensor, vocabulary: int) -> Tensor:
        """Scores [N] in [0, 1] of the step's positions."""
        h = entropy_nats / math.log(vocabulary)
        if len(h) and self.entropy_clip < 1:
            h = h.clamp(max=_quantile(h, self.entropy_clip))
        h, d = _scaled(h), _scaled(mismatch)
        if self.mode == "soft_or":
            # h + d - h d, so written that h = 1 or d = 1 gives exactly 1: a tie, not a rounding.
            return 1 - (1 - h) * (1 - d)
        return self.entropy_weight * h + (1 - self.entropy_weight) * d

    def _best(self, score: Tensor) -> Tensor:
        # The small term keeps products such as 0.07 * 100 = 7.000...1 from rounding up.
        count = math.ceil(self.retained_fraction * len(score) - 1e-9)
        return score.argsort(descending=True, stable=True)[: max(count, 1)]

    def _weights(self, score: Tensor) -> Tensor:
        if self.mode != "reweight" or not score.any():
            return torch.ones_like(score)
        return score / score.mean()


def _quantile(values: Tensor, share: float) -> Tensor:
    """Linearly interpolated quantile; by sorting, since torch.quantile refuses 2^24 values."""
    ordered = values.sort().values
    place = share * (len(values) - 1)
    below, above = math.floor(place), math.ceil(place)
    return torch.lerp(ordered[below], ordered[above], place - below)


def _scaled(values: Tensor) -> Tensor:
    """Values [N] moved and scaled to [0, 1]; all 0 where they are equal."""
    if not len(values):
        return values
    low, high = values.min(), values.max()
    return torch.where(high > low, (values - low) / torch.where(high > low, high - low, 1.0), 0.0)
