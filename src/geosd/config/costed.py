"""What tables of costs may read: the paper's protocol, because they are about its models."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from geosd.config.studies import Study


def _models(study: Study, *_: Any) -> dict[str, Any]:
    return {"models": list(study.models)}


def _update(study: Study, *_: Any) -> dict[str, Any]:
    """The size of an update of the protocol; the study's own overlay is about other models."""
    training = study.params.protocol.training
    return {"problems": training.problems, "response_tokens": training.response_tokens}


def _flops(study: Study, *_: Any) -> dict[str, Any]:
    kfac = study.params.protocol.training.optimiser.kfac
    return {**_update(study), "blocks": kfac.blocks, "subsample": kfac.subsample}


def _memory(study: Study, *_: Any) -> dict[str, Any]:
    return {**_update(study), "top_k": study.params.protocol.training.top_k}


COSTED: dict[str, Callable[..., dict[str, Any]]] = {
    "table_architectures": _models,
    "table_flops": _flops,
    "table_memory": _memory,
    "table_kfac_memory": lambda *_: {},
}
