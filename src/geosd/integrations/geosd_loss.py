"""GeoSD's loss as one call for any trainer, a chunk of positions at a time.

B = sequences, T = tokens, D = hidden size, V = vocabulary, N = positions of the loss, n = those of
a chunk.
"""

import warnings
from collections.abc import Sequence
from typing import Literal

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from geosd.geometry import union_support
from geosd.models.output_head import HALF, output_logits
from geosd.objectives.geosd import GeoSD
from geosd.objectives.objective import ObjectiveStates
from geosd.objectives.reduce import LossMean, mean_loss


class GeoSDLoss:
    """D_H(p, q) + lambda d_FR^2(p, anchor) on the union of top-K tokens, averaged over responses.

    p = student, q = teacher. The loss of a chunk of positions is computed again in the backward
    pass, so that of all chunks only the inputs stay in memory: with hidden states as inputs, no
    logits. Hidden states in bfloat16 give logits in float32. Logits in half precision are rounded
    already, so that near the anchor the second term is mostly rounding (docs/method.md): a warning
    says so.

    Args:
        top_k: K of the union of the models' top-K tokens (paper, Training: 1024).
        drift_penalty: lambda; 0 removes the second term, and no anchor is needed.
        divergence: The teacher's pull: "hellinger" is the paper's method, "jsd" its ablation.
        loss_mean: "sequence" is the paper's mean over tokens, then over responses; "token" counts
            every position alike.
        temperature: Divides all logits; 1 in the paper.
        chunk: Positions whose logits are held at once.

    Raises:
        ValueError: A value is not allowed; says what is.

    Source: the paper, equations (distillation-loss), (prox-term) and (full-loss).

    Example:
        >>> student, teacher, anchor = torch.randn(3, 2, 5, 32)
        >>> mask = torch.tensor([[0, 0, 1, 1, 1], [0, 1, 1, 0, 0]])
        >>> loss = GeoSDLoss(top_k=8)(student, teacher, anchor, mask)
    """

    def __init__(
        self,
        top_k: int = 1024,
        drift_penalty: float = 1.0,
        divergence: Literal["hellinger", "jsd"] = "hellinger",
        *,
        loss_mean: LossMean = "sequence",
        temperature: float = 1.0,
        chunk: int = 512,
    ) -> None:
        self.objective = GeoSD(divergence=divergence, drift_penalty=drift_penalty)
        for name, value in (("top_k", top_k), ("temperature", temperature), ("chunk", chunk)):
            if not value > 0:
                raise ValueError(f"GeoSDLoss: {name} is {value}.\nHint: it must be positive.")
        self.top_k, self.loss_mean = top_k, loss_mean
        self.temperature, self.chunk = temperature, chunk

    def __call__(
        self,
        student: Tensor,
        teacher: Tensor,
        anchor: Tensor | None,
        mask: Tensor,
        lm_heads: Sequence[nn.Module] | None = None,
    ) -> Tensor:
        """The loss of a batch, a scalar; see `terms`."""
        return self.terms(student, teacher, anchor, mask, lm_heads)["loss"]

    def terms(
        self,
        student: Tensor,
        teacher: Tensor,
        anchor: Tensor | None,
        mask: Tensor,
        lm_heads: Sequence[nn.Module] | None = None,
    ) -> dict[str, Tensor]:
        """The loss of a batch and its parts.

        Args:
            student: [B, T, V] logits that predict each response token, or with `lm_heads`
                [B, T, D] hidden states after the last norm. Takes the gradient.
            teacher: The same of the teacher, at the same response tokens.
            anchor: The same of the anchor; None where drift is not penalised.
            mask: [B, T], true where a response token is predicted.
            lm_heads: Output heads of student, teacher and anchor, where hidden states are given.

        Returns:
            "loss", with gradient to the student's input and head; "distil" and, where drift is
            penalised, "prox" (without lambda), without gradient. All 0 where the mask is empty.

        Raises:
            ValueError: Shapes differ, or an anchor or a head is missing.
        """
        inputs = {"student": student, "teacher": teacher}
        if self.objective.drift_penalty:
            inputs["anchor"] = anchor
        self._check(inputs, mask, lm_heads)
        mask = mask.bool()
        at_mask = [each[mask].split(self.chunk) for each in inputs.values()]
        kept = {"use_reentrant": False, "preserve_rng_state": False}
        pieces = [
            checkpoint(self._terms_of_chunk, lm_heads, *parts, **kept)
            for parts in zip(*at_mask, strict=True)
            if len(parts[0])
        ]
        # And one position without weight in the last row: the mean then knows of rows that the mask
        # leaves empty, and the loss of an empty mask has a gradient, 0.
        nothing = student[:0].sum()[None].float()
        sequence = mask.nonzero()[:, 0]
        weight = nn.functional.pad(torch.ones_like(sequence, dtype=torch.float32), (0, 1))
        sequence = nn.functional.pad(sequence, (0, 1), value=len(mask) - 1)
        terms = {}
        for name in ("loss", "distil", "prox") if "anchor" in inputs else ("loss", "distil"):
            values = torch.cat([*(piece[name] for piece in pieces), nothing])
            mean = mean_loss(values, weight, sequence, over=self.loss_mean)
            terms[name] = mean if name == "loss" else mean.detach()
        return terms

    def _terms_of_chunk(
        self, lm_heads: Sequence[nn.Module] | None, student: Tensor, *others: Tensor
    ) -> dict[str, Tensor]:
        """Loss and parts of a chunk of positions, each [n]."""
        heads = lm_heads or [None] * (1 + len(others))
        logits = [self._logits(heads[0], student)]
        with torch.no_grad():
            logits += [self._logits(*each) for each in zip(heads[1:], others, strict=False)]
        support = union_support(logits, self.top_k)
        log_p, log_q, log_anchor, *_ = [*(support.restrict(each) for each in logits), None]
        return self.objective.per_position(
            ObjectiveStates(log_p, log_q, log_anchor, None, None, None)
        )

    def _logits(self, head: nn.Module | None, value: Tensor) -> Tensor:
        if head is not None:
            value = output_logits(head, value.to(head.weight.dtype))
        return value if self.temperature == 1 else value / self.temperature

    def _check(
        self, inputs: dict[str, Tensor | None], mask: Tensor, lm_heads: Sequence[nn.Module] | None
    ) -> None:
        for name, value in inputs.items():
            if value is None:
                why, hint = "", f"give the {name}'s tensor"
                if name == "anchor":
                    why = f", but drift_penalty is {self.objective.drift_penalty}"
                    hint += ", or set drift_penalty=0"
                raise ValueError(f"GeoSDLoss: {name} is None{why}.\nHint: {hint}.")
            if value.dim() != 3 or mask.shape != value.shape[:2]:
                raise ValueError(
                    f"GeoSDLoss: {name} has shape {tuple(value.shape)}, the mask"
                    f" {tuple(mask.shape)}; expected [B, T, V] or [B, T, D], and [B, T].\nHint:"
                    " cut every tensor to the response tokens."
                )
        dtype = inputs["student"].dtype
        if lm_heads is None and "anchor" in inputs and dtype in HALF:
            warnings.warn(
                f"GeoSDLoss: the logits are {dtype}, so that near the anchor the proximal term is"
                " mostly their rounding.\nHint: give hidden states and lm_heads, or logits of"
                " a head in float32.",
                stacklevel=4,
            )
        if lm_heads is not None and len(lm_heads) < len(inputs):
            raise ValueError(
                f"GeoSDLoss: {len(lm_heads)} output heads for {', '.join(inputs)}.\nHint: give one"
                " each; a teacher that is the student itself has the student's."
            )
