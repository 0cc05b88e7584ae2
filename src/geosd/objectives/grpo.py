"""GRPO: outcome rewards relative to a group, without privileged context."""

from dataclasses import dataclass
from typing import Annotated, ClassVar

import torch
from torch import Tensor

from geosd.objectives.hyperparameters import Bounds
from geosd.objectives.objective import (
    Objective,
    ObjectiveBatch,
    ObjectiveStates,
    ObjectiveTerms,
    ResponseSource,
    register_objective,
)


@register_objective("grpo")
@dataclass(frozen=True)
class GRPO(Objective):
    """-min(r A, clip(r, 1-eps, 1+eps) A) + beta k3 at every position of G responses.

    A = (R - mean R) / (std R + std_epsilon), mean and Bessel-corrected std over the group, which is
    the step's B sequences. r = p(y_t) / sg p(y_t): rollouts are fresh at every step and each batch
    makes one update, so that the behaviour policy is the current one, r is 1 in value, and the
    clip never acts. k3 = e^d - d - 1 with d = log pi_0(y_t) - log p(y_t), in the loss and not in
    the reward. The mean over tokens within a response, then over responses, is the loop's.

    Source: Shao et al. (arXiv 2402.03300), equations 3 and 4; the paper (app:exp-baselines) selects
    eps = .2 and beta = .03. Our reading where it is silent: pi_0 as the reference, std_epsilon =
    1e-4 (TRL).
    """

    rollouts: ClassVar[ResponseSource] = "group"

    clip: Annotated[float, Bounds(ge=0.001, le=1)] = 0.2
    """eps, half-width of the ratio's clip; the paper selects 0.2."""
    kl_coefficient: Annotated[float, Bounds(ge=0, le=100)] = 0.03
    """beta; the paper selects 0.03. 0 removes the penalty, and no reference is needed."""
    std_epsilon: Annotated[float, Bounds(ge=1e-12, le=1)] = 1e-4
    """Added to the standard deviation of the group's rewards; 1e-4 is TRL's value."""

    @property
    def needs(self) -> frozenset[str]:
        """pi_0 where the distance to it is penalised."""
        return frozenset({"reference"} if self.kl_coefficient else ())

    def per_position(self, states: ObjectiveStates) -> dict[str, Tensor]:
        """The ratio and the k3 estimate of KL(p||pi_0) at each position."""
        log_p = states.sampled
        local = {"ratio": (log_p - log_p.detach()).exp()}
        if self.kl_coefficient:
            d = states.sampled_reference - log_p
            # expm1 keeps the digits of k3 ~ d^2/2 while the student is still close to pi_0.
            local["kl"] = torch.expm1(d) - d
        return local

    def combine(self, scalars: dict[str, Tensor], batch: ObjectiveBatch) -> ObjectiveTerms:
        """Advantages within the group, the clipped surrogate, and the penalty."""
        if batch.reward is None or len(batch.reward) < 2:
            raise ValueError(
                f"grpo: rewards are {batch.reward}; expected those of a group of 2 or more.\n"
                "Hint: let the loop sample a group of responses (the paper's G is 8)."
            )
        ratio = scalars["ratio"]
        advantage = self.advantages(batch.reward).to(ratio.dtype)[batch.sequence]
        clipped = ratio.clamp(1 - self.clip, 1 + self.clip)
        loss = -torch.minimum(ratio * advantage, clipped * advantage)
        parts = {"surrogate": loss.detach()}
        if self.kl_coefficient:
            loss = loss + self.kl_coefficient * scalars["kl"]
            parts["kl"] = scalars["kl"].detach()
        metrics = {
            "reward": batch.reward.float().mean().item(),
            "zero_variance": float(batch.reward.min() == batch.reward.max()),
        }
        return ObjectiveTerms(loss, torch.ones_like(ratio).detach(), parts, metrics)

    def advantages(self, reward: Tensor) -> Tensor:
        """Rewards of one group [B], standardised within it; 0 where all are equal."""
        reward = reward.detach().float()
        return (reward - reward.mean()) / (reward.std(correction=1) + self.std_epsilon)
