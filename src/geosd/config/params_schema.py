"""What params.yaml may hold beside the protocol: models, resources, variants and studies.

Each lays partial sections over the protocol's. `overlay_of` makes their classes.
"""

from __future__ import annotations

import typing
from functools import cache
from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field, create_model, model_validator

from geosd.config.protocol_schema import (
    Base,
    Count,
    Data,
    Evaluation,
    Name,
    Pool,
    Positive,
    Protocol,
    Rollout,
    Scalar,
    Section,
    Strict,
    Training,
)

Axes = dict[str, list[Scalar]]
Kind = Literal["main", "ablation", "privilege", "ladder", "stepsize", "selection", "readings"]
DEFAULT = "default"
"""Name of the resources of every model that has none of its own."""


@cache
def overlay_of(section: type[Section]) -> type[Strict]:
    """The class of partial sections: the same keys with the same bounds, each of them optional."""
    fields: dict[str, Any] = {}
    for name, field in section.model_fields.items():
        # A factory, so that the JSON schema shows no default: a key left out is inherited.
        unset = Field(
            default_factory=lambda: None,
            description=field.description,
            discriminator=field.discriminator,
        )
        kind = _with_overlays(field.annotation)
        fields[name] = (Annotated[(kind, *field.metadata)] if field.metadata else kind, unset)
    made = create_model(f"{section.__name__}Overlay", __base__=Strict, **fields)
    made.__doc__ = f"{section.__doc__} Keys left out are inherited."
    return made


def _with_overlays(annotation: Any) -> Any:
    """The annotation with every section inside it replaced by its overlay."""
    if isinstance(annotation, type) and issubclass(annotation, Section):
        return overlay_of(annotation)
    if (arguments := typing.get_args(annotation)) and type(None) in arguments:
        return typing.Optional[_with_overlays(arguments[0])]  # noqa: UP045 (built, not written)
    return annotation


TrainingOverlay = overlay_of(Training)


class Sections(Section):
    """Any of the protocol's sections, each with only the keys that differ."""

    data: overlay_of(Data) = Field(default_factory=lambda: None)
    base: overlay_of(Base) = Field(default_factory=lambda: None)
    pool: overlay_of(Pool) = Field(default_factory=lambda: None)
    training: TrainingOverlay = Field(default_factory=lambda: None)
    evaluation: overlay_of(Evaluation) = Field(default_factory=lambda: None)
    rollout: overlay_of(Rollout) = Field(default_factory=lambda: None)


class Extendable(Section):
    """An entry that may be laid over another of its section."""

    extends: Name | None = Field(
        default_factory=lambda: None,
        description="Entry of the same section that this one is laid over, key by key; lists and"
        " `grid` are replaced whole.",
    )


class ModelSchema(Extendable, Sections):
    """A model, and what its size or family changes in the protocol."""

    about: str
    """One line: what the model is."""


class VariantSchema(Extendable):
    """A named set of overrides of the training section."""

    training: TrainingOverlay | None
    """What the variant changes; null where nothing is trained (pi_0)."""


class StudyVariantSchema(Section):
    """What one study changes in a variant."""

    training: TrainingOverlay
    """Keys that differ in this study, such as a learning rate selected on its models."""


class JobResources(Section):
    """The resources of one job; memory and time double each time it is tried again."""

    gpus: Annotated[int, Field(ge=0)]
    """GPUs, all on one node; how many CPU cores come with each is the site's matter."""
    mem_mb: Count
    """Main memory, in MB."""
    minutes: Count
    """Longest run time, in minutes."""


class TrainingResources(JobResources):
    """The resources of a training."""

    inference_gpus: Annotated[int, Field(ge=0)]
    """Those of the GPUs that generate rollouts and score the anchor; the optimiser's state is
    sharded over the others. 0 leaves both to all of them. Appendix "Hardware": inference workers
    and training workers; how many is not given."""

    @property
    def processes(self) -> int:
        """Processes to start: one on each GPU that trains, one that samples and scores for them."""
        return max(1, self.gpus - self.inference_gpus + bool(self.inference_gpus))

    @property
    def placement(self) -> str:
        """The option of the step `train` that says whether the last process is such a worker."""
        return "--worker" if self.inference_gpus else "--no-worker"

    @model_validator(mode="after")
    def _one_trains(self) -> TrainingResources:
        if self.gpus and self.inference_gpus >= self.gpus:
            raise ValueError(f"of {self.gpus} GPUs at least one must train")
        if self.inference_gpus > self.gpus:
            raise ValueError("inference_gpus are some of gpus")
        return self


class ModelResources(Extendable):
    """What the jobs of one model ask for, rule by rule. Not in the paper."""

    base: JobResources
    """Rule base."""
    pool: JobResources
    """Rule pool."""
    train: TrainingResources
    """Rule train."""
    evaluate: JobResources
    """Rules evaluate and evaluate_pi_0."""
    states: JobResources
    """Rule states."""
    alignment: JobResources
    """Rule alignment."""

    def job(self, rule: str) -> JobResources:
        """The resources of one rule's jobs."""
        return getattr(self, "evaluate" if rule == "evaluate_pi_0" else rule)


class StudySchema(Extendable, Sections):
    """A study: what is run, and what differs from the protocol."""

    about: str
    """One line: what the study is for and what it costs. Not inherited."""
    kind: Kind
    """What the study is designed for, which decides the claims that it judges; the models of a
    `ladder` are sizes of one architecture, from small to large. Not inherited."""
    claims_on_costs: bool = Field(
        default_factory=lambda: False,
        description="Whether the claims on costs, which no run decides, are judged here. Not"
        " inherited.",
    )
    selected_rates: str | None = Field(
        default_factory=lambda: None,
        description="File of learning rates that a selection chose, by its path from where programs"
        " run; written by `make select-rates`.",
    )
    models: list[Name] = Field(min_length=1, description="Models, in the order of the tables.")
    methods: list[Name] = Field(min_length=1, description="Variants, in the order of the tables.")
    seeds: list[int] = Field(min_length=1, description="Seeds; one run each.")
    outputs: list[Name] = Field(
        min_length=1, description="Rules of the tables, figures and ledgers that the study ends in."
    )
    variants: dict[Name, StudyVariantSchema | None] = Field(
        default_factory=dict,
        description="What this study changes in a variant; null takes an inherited entry away.",
    )
    grid: dict[Name, Axes | list[Axes]] = Field(
        default_factory=dict,
        description="Candidates: variant, key of its training section (dots lead into sections), "
        "values. Every point of a variant's grid, or of each of its grids, is run as a variant of "
        "its own. A grid replaces an inherited one whole; {} takes it away.",
    )


class Params(Section):
    """All of params.yaml."""

    study: Name
    """The study that is run where the command line names none (`--config study=NAME`)."""
    protocol: Protocol
    """The paper's protocol, each value with its place in the paper."""
    models: dict[Name, ModelSchema]
    """Models by name."""
    resources: dict[Name, ModelResources]
    """What jobs ask for, by model; `default` is for the models that are not named."""
    variants: dict[Name, VariantSchema]
    """Variants by name."""
    studies: dict[Name, StudySchema]
    """Studies by name."""

    def resources_of(self, model: str) -> ModelResources:
        """What the jobs of a model ask for."""
        return self.resources.get(model, self.resources[DEFAULT])


class SelectedRates(Section):
    """A file of learning rates that a selection chose; `make select-rates` writes it."""

    study: Name
    """The selection."""
    scores_sha256: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")] | None
    """SHA-256 of its tidy scores; null where it was not kept."""
    rule: str
    """How the best candidate is chosen."""
    learning_rate: dict[Name, Positive]
    """Variant -> its rate."""


def given_values(overlay: BaseModel | None) -> dict[str, Any]:
    """The keys that an overlay gives, as plain values."""
    return {} if overlay is None else overlay.model_dump(mode="json", exclude_unset=True)
