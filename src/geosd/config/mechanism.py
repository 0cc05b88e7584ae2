"""What the rules that look at states and checkpoints may read."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from geosd.config.asked import asked
from geosd.config.output_settings import trained_among
from geosd.reporting.specs import output_specs

if TYPE_CHECKING:
    from geosd.config.studies import Study


def _states(study: Study, model: str, _: Any) -> dict[str, Any]:
    """The recipe that all variants share: the states are pi_0's, and no variant's."""
    recipe = study.section("training", model)
    keys = ("problems", "temperature", "response_tokens", "privilege", "top_k", "chunk")
    seed = study.section("pool", model)["seed"]
    return {"seed": seed, **asked(study, model), **{key: recipe[key] for key in keys}}


def _alignment(study: Study, model: str, variant: str) -> dict[str, Any]:
    training = study.training(model, variant)
    return {key: training[key] for key in ("steps", "snapshots", "problems", "chunk")}


def _drift_over_steps(study: Study, *_: Any) -> dict[str, Any]:
    """The runs of the figure that is drawn of it."""
    spec = output_specs()["figure_mechanism"]
    methods = trained_among(study, spec.trained)
    return {"models": list(study.models), "methods": methods, "seeds": list(study.seeds)}


MECHANISM: dict[str, Callable[..., dict[str, Any]]] = {
    "states": _states,
    "alignment": _alignment,
    "drift_over_steps": _drift_over_steps,
}
