"""Chord and arc on the sphere of square roots of probabilities.

sqrt(p) and sqrt(q) are unit vectors. Half the squared chord between them is the squared Hellinger
divergence; twice the angle is the Fisher-Rao distance. p = student, q = teacher or anchor; all
functions here are symmetric in the two.

The Fisher metric of the simplex is ds^2 = sum dp_i^2 / p_i. In the coordinates u = sqrt(p) it is
4 sum du_i^2, the metric of a sphere of radius 2, on which d_FR is the length of an arc.

Shapes: [..., V] in, normalised or not, [...] out. -inf is probability zero.

Source: the paper, section "The sphere of next-token distributions" (app:sphere), equations
(fisher-simplex) and (metric-sphere).
"""

import math

import torch
from torch import Tensor

from geosd.geometry.simplex import log_distributions

# 16 arcsin(sqrt(s/2))^2 = 8 sum_n (2s)^n / (n^2 C(2n, n)). With six terms below s = 0.01 both the
# value and the derivative are exact to 1e-14.
_SERIES = tuple(8 * 2.0**n / (n * n * math.comb(2 * n, n)) for n in range(1, 7))
_SERIES_BELOW = 1e-2


def overlap(log_p: Tensor, log_q: Tensor) -> Tensor:
    """Bhattacharyya coefficient rho = sum_i sqrt(p_i q_i): 1 at agreement, 0 when disjoint.

    Source: the paper, equation (hellinger) and the coefficient rho of section (app:sphere).
    """
    log_p, log_q = log_distributions(log_p, log_q)
    # exp(-inf) is 0 with gradient 0: no square root of zero is ever differentiated.
    return (0.5 * (log_p + log_q)).exp().sum(-1)


def hellinger(log_p: Tensor, log_q: Tensor, *, normalised: bool = False) -> Tensor:
    """Squared Hellinger divergence D_H = 1/2 sum_i (sqrt p_i - sqrt q_i)^2, in [0, 1].

    Equals 1 - rho for normalised p, q, but loses no digits where the two agree. Weighted-score
    form of the gradient, grad = -sum_i w_i grad log p_i: w_i = 1/2 sqrt(p_i q_i). Near agreement,
    q = p + eps, it is 1/8 sum eps_i^2 / p_i up to third order.

    Source: the paper, equations (hellinger), (hellinger-chord), (hellinger-grad),
    (hellinger-grad-app), (w-h) and (h-taylor).
    """
    log_p, log_q = log_distributions(log_p, log_q, normalised=normalised)
    return 0.5 * ((0.5 * log_p).exp() - (0.5 * log_q).exp()).square().sum(-1)


def fisher_rao(log_p: Tensor, log_q: Tensor) -> Tensor:
    """Fisher-Rao distance d_FR = 2 arccos(rho), in [0, pi] radians; a metric.

    Computed as 4 arcsin(sqrt(s / 2)) with s = D_H. At p = q the distance has a kink; there its
    gradient is given as 0, the subgradient of least norm. Losses want `fisher_rao_squared`.

    Source: the paper, equations (fr-distance) and (fr-arc).
    """
    s = _half_squared_chord(log_p, log_q)
    apart = s > torch.finfo(s.dtype).tiny
    # `where` on the input as well: the unused branch must have a finite gradient too.
    return torch.where(apart, 4 * (torch.where(apart, s, 0.5) / 2).sqrt().arcsin(), 0.0)


def fisher_rao_squared(log_p: Tensor, log_q: Tensor, *, normalised: bool = False) -> Tensor:
    """Squared Fisher-Rao distance d_FR^2 in [0, pi^2], smooth at p = q and at disjoint supports.

    From s = D_H as 16 arcsin(sqrt(s / 2))^2, by its power series 8 s + 4/3 s^2 + ... for small s,
    because arccos has no derivative at 1. Weighted-score form: w_i = 4 (theta / sin theta)
    sqrt(p_i q_i) with theta = arccos(rho) = d_FR / 2, which is 8 times Hellinger's at agreement.
    Near agreement, q = p + eps, it is the Fisher quadratic sum eps_i^2 / p_i up to third order.

    Source: the paper, equations (fr-distance), (prox-term) and (fr-taylor), and section "Near
    agreement, all divergences coincide" (app:local-equiv).
    """
    s = _half_squared_chord(log_p, log_q, normalised)
    near = s < _SERIES_BELOW
    small = torch.where(near, s, 0.0)
    series = torch.zeros_like(s)
    for coefficient in reversed(_SERIES):
        series = (series + coefficient) * small
    arc = 16 * (torch.where(near, 0.5, s) / 2).sqrt().arcsin().square()
    return torch.where(near, series, arc)


def _half_squared_chord(log_p: Tensor, log_q: Tensor, normalised: bool = False) -> Tensor:
    # Rounding may lift s a hair above 1 at disjoint supports; the arc ends there.
    return hellinger(log_p, log_q, normalised=normalised).clamp(max=1.0)
