"""The alpha family, which connects the two directions of KL through Hellinger.

p = student, q = teacher. With the paper's formula alpha -> +1 is the forward direction KL(q||p),
alpha -> -1 the reverse direction KL(p||q), and alpha = 0 is 4 D_H.

Shapes: [..., V] in, normalised or not, [...] out. -inf is probability zero.
"""

import torch
from torch import Tensor

from geosd.geometry.kl import forward_kl
from geosd.geometry.simplex import floored, log_distributions


def alpha_divergence(log_p: Tensor, log_q: Tensor, alpha: float) -> Tensor:
    """D_alpha(p||q) = 4/(1-alpha^2) (1 - sum_i p_i^((1-alpha)/2) q_i^((1+alpha)/2)).

    Weighted score: w_i = 2/(1+alpha) p_i^((1-alpha)/2) q_i^((1+alpha)/2). Duality:
    D_alpha(p||q) = D_-alpha(q||p). +1 and -1 give the limits KL(q||p) and KL(p||q).

    Raises:
        ValueError: alpha is outside [-1, 1].

    Source: the paper, equation (alpha-divergence) and section (app:alpha), D_0 = 4 D_H.
    """
    if not -1 <= alpha <= 1:
        raise ValueError(
            f"alpha_divergence: alpha is {alpha!r}; it must lie in [-1, 1].\n"
            "Hint: 0 is 4 times the Hellinger divergence, 1 is KL(q||p), -1 is KL(p||q)."
        )
    if alpha < 0:
        log_p, log_q, alpha = log_q, log_p, -alpha
    if alpha == 1:
        return forward_kl(log_p, log_q)
    log_p, log_q = log_distributions(log_p, log_q)
    a, b = (1 - alpha) / 2, (1 + alpha) / 2
    p, q = log_p.exp(), log_q.exp()
    # With a + b = 1 and normalised p, q, 1 - sum p^a q^b = sum (a p + b q - p^a q^b), each term
    # >= 0. Written with expm1 it keeps its digits when a -> 0, where the factor 1/a blows up.
    # Only log q needs the floor: where q = 0 the factor q removes the term, whatever p is.
    power = torch.expm1(a * (log_p - floored(log_q)))
    return ((p - q) / b - q * power / (a * b)).sum(-1)
