"""The schema of `training.objective`: a class per objective, a field per hyperparameter."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Union

from pydantic import Field, create_model

from geosd.config.schema_base import Strict
from geosd.objectives.hyperparameters import Hyperparameter, declared, declared_rollouts


def _objective(name: str, hyperparameters: tuple[Hyperparameter, ...]) -> type[Strict]:
    """The section of one objective: its name, and what its class declares, each key optional."""
    keys: dict[str, Any] = {
        one.name: (one.annotation, Field(default_factory=lambda: None, description=one.meaning))
        for one in hyperparameters
    }
    named = (Literal[name], Field(description="Name under which geosd.objectives registers it."))
    made = create_model(f"Objective_{name}", __base__=Strict, name=named, **keys)
    made.__doc__ = f"The loss of geosd.objectives.{name.replace('-', '_')}, with its own keys."
    return made


HYPERPARAMETERS = declared()
ROLLOUTS = declared_rollouts()
"""Name of each objective -> what it trains on: student, group or solution."""
OBJECTIVES = tuple(_objective(name, keys) for name, keys in HYPERPARAMETERS.items())
Objective = Annotated[Union[OBJECTIVES], Field(discriminator="name")]  # noqa: UP007
