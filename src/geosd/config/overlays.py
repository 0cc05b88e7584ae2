"""Overlays: the same sections with every key optional, and the rule by which they are laid."""

from __future__ import annotations

import typing
from typing import Any

from pydantic import BaseModel, Field, create_model
from pydantic.fields import FieldInfo

from geosd.config.resources import DEFAULT, Resources
from geosd.config.sections import (
    Base,
    Data,
    Evaluation,
    Name,
    Objective,
    Pool,
    Protocol,
    Rollout,
    Scalar,
    Section,
    Training,
)

Axes = dict[str, list[Scalar]]


def overlay_of(section: type[Section]) -> type[Section]:
    """The class of partial sections: the same keys with the same bounds, each of them optional."""
    fields: dict[str, Any] = {}
    for name, field in section.model_fields.items():
        loose = FieldInfo.from_annotation(typing.cast(Any, _loosened(field.annotation)))
        fields[name] = (
            typing.Annotated[(loose.annotation, *field.metadata)]
            if field.metadata
            else loose.annotation,
            # A factory, so that the JSON schema shows no default: a key left out is inherited.
            Field(default_factory=lambda: None, description=field.description),
        )
    made = create_model(f"{section.__name__}Overlay", __base__=Section, **fields)
    made.__doc__ = f"{section.__doc__} Keys left out are inherited."
    return made


def _loosened(annotation: Any) -> Any:
    """The annotation with every section inside it replaced by its overlay."""
    if isinstance(annotation, type) and issubclass(annotation, Section):
        return overlay_of(annotation)
    if (arguments := typing.get_args(annotation)) and type(None) in arguments:
        return typing.Optional[_loosened(arguments[0])]  # noqa: UP045 (built, not written)
    return annotation


DataOverlay = overlay_of(Data)
BaseOverlay = overlay_of(Base)
PoolOverlay = overlay_of(Pool)
TrainingOverlay = overlay_of(Training)
EvaluationOverlay = overlay_of(Evaluation)
RolloutOverlay = overlay_of(Rollout)


class Sections(Section):
    """Any of the protocol's sections, each with only the keys that differ."""

    data: DataOverlay = Field(default_factory=lambda: None)
    base: BaseOverlay = Field(default_factory=lambda: None)
    pool: PoolOverlay = Field(default_factory=lambda: None)
    training: TrainingOverlay = Field(default_factory=lambda: None)
    evaluation: EvaluationOverlay = Field(default_factory=lambda: None)
    rollout: RolloutOverlay = Field(default_factory=lambda: None)


class Model(Sections):
    """A model, and what its size or family changes in the protocol."""

    about: str
    """One line: what the model is."""


class Variant(Section):
    """A named set of overrides of the training section."""

    training: TrainingOverlay | None
    """What the variant changes; null where nothing is trained (pi_0)."""


class VariantInStudy(Section):
    """What one study changes in a variant."""

    training: TrainingOverlay
    """Keys that differ in this study, such as a learning rate selected on its models."""


class StudyOverlay(Sections):
    """A study: what is run, and what differs from the protocol."""

    about: str
    """One line: what the study is for and what it costs."""
    models: list[Name] = Field(min_length=1, description="Models, in the order of the tables.")
    methods: list[Name] = Field(min_length=1, description="Variants, in the order of the tables.")
    seeds: list[int] = Field(min_length=1, description="Seeds; one run each.")
    outputs: list[Name] = Field(
        min_length=1, description="Rules of the tables, figures and ledgers that the study ends in."
    )
    variants: dict[Name, VariantInStudy] = Field(
        default_factory=dict, description="What this study changes in a variant."
    )
    grid: dict[Name, Axes | list[Axes]] = Field(
        default_factory=dict,
        description="Candidates: variant, key of its training section (dots lead into sections), "
        "values. Every point of a variant's grid, or of each of its grids, is run as a variant of "
        "its own.",
    )


class Params(Section):
    """All of params.yaml."""

    study: Name
    """The study that is run where the command line names none (`--config study=NAME`)."""
    protocol: Protocol
    """The paper's protocol, each value with its place in the paper."""
    models: dict[Name, Model]
    """Models by name."""
    resources: dict[Name, Resources]
    """What jobs ask for, by model; `default` is for the models that are not named."""
    variants: dict[Name, Variant]
    """Variants by name."""
    studies: dict[Name, StudyOverlay]
    """Studies by name."""

    def needs(self, model: str) -> Resources:
        """What the jobs of a model ask for."""
        return self.resources.get(model, self.resources[DEFAULT])


def merge(below: dict[str, Any], above: dict[str, Any]) -> dict[str, Any]:
    """Lay one mapping over another, key by key, down to the leaves.

    An objective of another name replaces the one below whole: its hyperparameters are another
    loss's and would mean nothing here.
    """
    if "name" in below and above.get("name", below["name"]) != below["name"]:
        return dict(above)
    merged = dict(below)
    for key, value in above.items():
        inner = merged.get(key)
        both = isinstance(inner, dict) and isinstance(value, dict)
        merged[key] = merge(inner, value) if both else value
    return merged


def said(overlay: BaseModel | None) -> dict[str, Any]:
    """The keys that an overlay does give, as plain values."""
    return {} if overlay is None else overlay.model_dump(mode="json", exclude_unset=True)


__all__ = ["Model", "Objective", "Params", "StudyOverlay", "Variant", "merge", "overlay_of", "said"]
