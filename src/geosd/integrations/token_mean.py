"""A loss that is the mean over all tokens of an optimiser step, in whatever parts they come."""

from collections.abc import Mapping

import torch
from accelerate import Accelerator
from torch import Tensor, nn


class TokenMean:
    """The mean over the tokens of a step, whatever its microbatches and processes.

    A microbatch cannot know how many tokens the later ones will have. So each adds its sum over a
    divisor that is the same for all of them, and the gradients get the right divisor at the end of
    the step, before they are clipped or preconditioned.
    """

    def __init__(self, accelerator: Accelerator) -> None:
        self.accelerator = accelerator
        self._begin()

    def _begin(self) -> None:
        self.divisor = 0.0
        self._tokens: Tensor | float = 0.0
        self._returned: Tensor | float = 0.0
        self._sums: dict[str, Tensor] = {}

    def expect(self, tokens: Tensor, microbatches: int) -> float:
        """The step's divisor; `tokens` of this process' first microbatch decide, and the others'.

        Every process calls this. As a step's mean is over the tokens of all processes, and their
        gradients are averaged, a divisor counts the tokens of one process.
        """
        if not self.divisor:
            counts = self.accelerator.gather(tokens.detach().reshape(1).float())
            self.divisor = max(1.0, counts.mean().item() * microbatches)
        return self.divisor

    def add(self, means: Mapping[str, Tensor], tokens: Tensor) -> Tensor:
        """The loss of a microbatch, of its means over its own tokens: "loss" and others."""
        self._tokens = self._tokens + tokens.detach().float()
        for name, mean in means.items():
            self._sums[name] = self._sums.get(name, 0.0) + mean.detach() * tokens
        loss = means["loss"] * tokens / self.divisor
        self._returned = self._returned + loss.detach()
        return loss

    @torch.no_grad()
    def end(self, model: nn.Module, last: Tensor) -> tuple[Tensor, dict[str, float]]:
        """Correct the gradients of a step after its last backward pass; every process calls this.

        Returns:
            In place of the `last` microbatch's loss that with which those of all microbatches, as
            a trainer adds them up, are the step's mean; and the step's mean of each value.
        """
        sums = torch.stack([self._tokens, *self._sums.values()]).reshape(1, -1)
        tokens, *sums = self.accelerator.gather(sums).sum(0).tolist()
        factor = self.accelerator.num_processes * self.divisor / max(1.0, tokens)
        if factor != 1:
            for parameter in model.parameters():
                if parameter.grad is not None:
                    parameter.grad.mul_(factor)
            last = last + (factor - 1) * self._returned
        means = {name: each / max(1.0, tokens) for name, each in zip(self._sums, sums, strict=True)}
        self._begin()
        return last, means
