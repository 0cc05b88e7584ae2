"""Every loss of geosd as `geosd conformance` calls it, on the union of the models' top-K tokens."""

from collections.abc import Callable
from functools import partial
from typing import Any

from torch import Tensor

from geosd import geometry
from geosd.integrations.geosd_loss import GeoSDLoss


def _on_union(name: str, student: Tensor, teacher: Tensor, top_k: int, **settings: Any) -> Tensor:
    """A divergence [B, T] on the union of the models' top-K tokens."""
    logits = student.flatten(0, 1), teacher.detach().flatten(0, 1)
    support = geometry.union_support(logits, top_k)
    divergence: Callable[..., Tensor] = getattr(geometry, name)
    return divergence(*map(support.restrict, logits), **settings).view(student.shape[:2])


DIVERGENCES = "forward_kl reverse_kl jsd skew_kl alpha_divergence hellinger fisher_rao"
LOSSES = {name: partial(_on_union, name) for name in f"{DIVERGENCES} fisher_rao_squared".split()}
LOSSES["geosd"] = lambda student, teacher, anchor, mask, top_k, drift_penalty: GeoSDLoss(
    top_k, drift_penalty
)(student, teacher, anchor, mask)
