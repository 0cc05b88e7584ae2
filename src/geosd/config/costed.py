"""What tables without results may read: those of costs the paper's protocol, the last the study."""

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


def _hyperparameters(study: Study, *_: Any) -> dict[str, Any]:
    """All settings but those of the base models, which the paper takes as they are."""
    own = [name for name in study.trained if name not in study.candidates]
    models = {
        model: {
            "pool": study.section("pool", model),
            "evaluation": study.section("evaluation", model),
            "training": {variant: _read(study.training(model, variant)) for variant in own},
        }
        for model in study.models
    }
    return {"runs": len(study.seeds), "data": study.section("data"), "models": models}


def _read(training: dict[str, Any]) -> dict[str, Any]:
    """A variant's training without the numbers of an update rule that it does not use."""
    optimiser = training["optimiser"]
    return training if optimiser["rule"] == "kfac" else {**training, "optimiser": {"rule": "adamw"}}


COSTED: dict[str, Callable[..., dict[str, Any]]] = {
    "table_architectures": _models,
    "table_flops": _flops,
    "table_memory": _memory,
    "table_kfac_memory": lambda *_: {},
    "table_hyperparameters": _hyperparameters,
}
