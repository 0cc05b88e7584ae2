"""The two directions of KL, and their two bounded relatives: Jensen-Shannon and skew KL.

p = student, q = teacher. "Forward" is KL(q||p), mass-covering; "reverse" is KL(p||q),
mode-seeking. All in nats. Logarithms are floored at log(finfo.tiny) of the compute dtype (see
`geosd.geometry.simplex`), so that a teacher token which the student excludes entirely costs at most
about 87 nats in float32 instead of infinity.

Gradients are stated in the paper's weighted-score form, grad D = -sum_i w_i grad log p_i, where
any multiple of p_i may be added to w_i because sum_i p_i grad log p_i = 0.

Shapes: [..., V] in, normalised or not, [...] out. -inf is probability zero.

Source: the paper, sections "Fisher information" (app:fisher), the score's mean, and "Per-token
teacher influence" (app:influence), the weighted-score form.
"""

import math
from typing import Literal

import torch
from torch import Tensor

from geosd.geometry.simplex import floored, log_distributions


def forward_kl(log_p: Tensor, log_q: Tensor, *, normalised: bool = False) -> Tensor:
    """KL(q||p) = sum_i q_i (log q_i - log p_i). Weighted score: w_i = q_i.

    Source: the paper, equations (forward-kl), (w-fkl) and, near agreement, (kl-taylor).
    """
    log_p, log_q = log_distributions(log_p, log_q, normalised=normalised)
    # q from the unfloored logarithm: it is exactly 0 at -inf, and 0 times a floored log is 0.
    return (log_q.exp() * (floored(log_q) - floored(log_p))).sum(-1)


def reverse_kl(log_p: Tensor, log_q: Tensor, *, normalised: bool = False) -> Tensor:
    """KL(p||q) = sum_i p_i (log p_i - log q_i). Weighted score: w_i = p_i (log q_i/p_i + KL).

    Source: the paper, equations (reverse-kl), (w-rkl) and, between neighbours of one family,
    (fisher-kl).
    """
    return forward_kl(log_q, log_p, normalised=normalised)


def jsd(log_p: Tensor, log_q: Tensor, beta: float = 0.5, *, normalised: bool = False) -> Tensor:
    """Generalised Jensen-Shannon divergence beta KL(q||M) + (1-beta) KL(p||M).

    M = beta q + (1-beta) p, beta in (0, 1). At 1/2 it is symmetric and at most ln 2. It vanishes at
    both ends; JSD/beta -> KL(q||p) as beta -> 0 and JSD/(1-beta) -> KL(p||q) as beta -> 1, so
    that beta sets the scale of the loss as well as its direction.
    Weighted score: w_i = (1-beta) p_i log(M_i / p_i).

    Raises:
        ValueError: beta is not in (0, 1).

    Source: Agarwal et al., GKD (arXiv 2306.13649), equation 1.
    """
    if not 0 < beta < 1:
        raise ValueError(
            f"jsd: beta is {beta!r}; it must lie strictly between 0 and 1.\nHint: the divergence is"
            " zero at both ends; for their directions use forward_kl (0) or reverse_kl (1)."
        )
    log_p, log_q = log_distributions(log_p, log_q, normalised=normalised)
    log_m = _log_mixture(log_q, log_p, beta)
    teacher = (log_q.exp() * (floored(log_q) - log_m)).sum(-1)
    student = (log_p.exp() * (floored(log_p) - log_m)).sum(-1)
    return beta * teacher + (1 - beta) * student


def skew_kl(
    log_p: Tensor,
    log_q: Tensor,
    alpha: float = 0.1,
    direction: Literal["forward", "reverse"] = "forward",
    *,
    normalised: bool = False,
) -> Tensor:
    """Skew KL: one distribution against a mixture that holds alpha of it, in [0, 1); 0 is plain KL.

    forward: KL(q || M), M = alpha q + (1-alpha) p; at most -log alpha.
        Weighted score: w_i = (1-alpha) p_i q_i / M_i.
    reverse: KL(p || M), M = alpha p + (1-alpha) q; at most -log alpha.
        Weighted score: w_i = p_i (log(M_i / p_i) + alpha p_i / M_i).

    Raises:
        ValueError: alpha is outside [0, 1), or direction is neither of the two.

    Source: Ko et al., DistiLLM (arXiv 2402.03898), section 3.1.
    """
    if not 0 <= alpha < 1:
        raise ValueError(
            f"skew_kl: alpha is {alpha!r}; it must lie in [0, 1).\nHint: the paper selects 0.1."
        )
    if direction == "reverse":
        log_p, log_q = log_q, log_p
    elif direction != "forward":
        raise ValueError(
            f"skew_kl: direction is {direction!r}; allowed are 'forward' and 'reverse'.\n"
            "Hint: 'forward' is KL(q||alpha q + (1-alpha) p), the paper's setting as we read it."
        )
    if alpha == 0:
        return forward_kl(log_p, log_q, normalised=normalised)
    log_p, log_q = log_distributions(log_p, log_q, normalised=normalised)
    log_m = _log_mixture(log_q, log_p, alpha)
    return (log_q.exp() * (floored(log_q) - log_m)).sum(-1)


def _log_mixture(log_a: Tensor, log_b: Tensor, share: float) -> Tensor:
    """log(share a + (1-share) b), from floored logs: logaddexp(-inf, -inf) has no gradient."""
    return torch.logaddexp(floored(log_a) + math.log(share), floored(log_b) + math.log1p(-share))
