"""Every loss of geosd as `geosd conformance` calls it, on the union of the models' top-K tokens."""

from collections.abc import Callable
from functools import partial
from typing import Any

from torch import Tensor

from geosd import geometry
from geosd.integrations.geosd_loss import GeoSDLoss


def _on_union(
    name: str,
    student: Tensor,
    teacher: Tensor,
    top_k: int,
    softcap: float | None = None,
    **settings: Any,
) -> Tensor:
    """A divergence [B, T] on the union of the models' top-K tokens, of logits before any cap."""
    logits = student.flatten(0, 1), teacher.detach().flatten(0, 1)
    if softcap is not None:
        logits = tuple(softcap * (each / softcap).tanh() for each in logits)
    support = geometry.union_support(logits, top_k)
    divergence: Callable[..., Tensor] = getattr(geometry, name)
    return divergence(*map(support.restrict, logits), **settings).view(student.shape[:2])


def _generalized_jsd(
    student: Tensor, teacher: Tensor, top_k: int, beta: float, softcap: float | None
) -> Tensor:
    """JSD, and the KL divergence that it leads to at either end of beta."""
    if beta in (0, 1):
        name = "reverse_kl" if beta else "forward_kl"
        return _on_union(name, student, teacher, top_k, softcap)
    return _on_union("jsd", student, teacher, top_k, softcap, beta=beta)


DIVERGENCES = "forward_kl reverse_kl jsd skew_kl alpha_divergence hellinger fisher_rao"
LOSSES = {name: partial(_on_union, name) for name in f"{DIVERGENCES} fisher_rao_squared".split()}
LOSSES["generalized_jsd"] = _generalized_jsd
LOSSES["geosd"] = lambda student, teacher, anchor, mask, top_k, drift_penalty: GeoSDLoss(
    top_k, drift_penalty
)(student, teacher, anchor, mask)
