"""What the rules that look at states and checkpoints may read."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from geosd.config.asked import asked

if TYPE_CHECKING:
    from geosd.config.studies import Study

ALIGNED = ("fwdkl", "geosd")
"""Variants whose checkpoints Figure alignment compares."""
DRIFTING = ("fwdkl", "geosd_no_prox", "geosd")
"""Variants whose drift over steps Figure mechanism B compares."""


def _states(study: Study, model: str, _: Any) -> dict[str, Any]:
    """The recipe that all variants share: the states are pi_0's, and no variant's."""
    recipe = study.section("training", model)
    keys = ("problems", "temperature", "response_tokens", "privilege", "top_k", "chunk")
    seed = study.section("pool", model)["seed"]
    return {"seed": seed, **asked(study, model), **{key: recipe[key] for key in keys}}


def _alignment(study: Study, model: str, variant: str) -> dict[str, Any]:
    training = study.training(model, variant)
    return {key: training[key] for key in ("steps", "snapshots", "problems", "chunk")}


def trained_among(study: Study, variants: tuple[str, ...]) -> list[str]:
    """Those of some variants that the study trains, in the order given."""
    return [variant for variant in variants if variant in study.trained]


def _shown(*variants: str) -> Callable[..., dict[str, Any]]:
    def settings(study: Study, *_: Any) -> dict[str, Any]:
        return {"models": list(study.models), "methods": trained_among(study, variants)}

    return settings


def _drift_over_steps(study: Study, *_: Any) -> dict[str, Any]:
    return {**_shown(*DRIFTING)(study), "seeds": list(study.seeds)}


MECHANISM: dict[str, Callable[..., dict[str, Any]]] = {
    "states": _states,
    "alignment": _alignment,
    "drift_over_steps": _drift_over_steps,
    "figure_mechanism": _shown(*DRIFTING),
    "figure_alignment": _shown(*ALIGNED),
    "figure_density": lambda study, *_: {"models": list(study.models)},
}
