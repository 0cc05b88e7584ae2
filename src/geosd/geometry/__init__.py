"""The geometry of next-token distributions: pure functions on log-probabilities.

Everywhere p is the student and q the teacher (or any other distribution held fixed). Nothing here
knows of models, positions or training.
"""

from geosd.geometry.alpha import alpha_divergence
from geosd.geometry.kl import forward_kl, jsd, reverse_kl, skew_kl
from geosd.geometry.simplex import entropy, floored
from geosd.geometry.sphere import fisher_rao, fisher_rao_squared, hellinger, overlap
from geosd.geometry.support import Support, union_support

__all__ = [
    "Support",
    "alpha_divergence",
    "entropy",
    "fisher_rao",
    "fisher_rao_squared",
    "floored",
    "forward_kl",
    "hellinger",
    "jsd",
    "overlap",
    "reverse_kl",
    "skew_kl",
    "union_support",
]
