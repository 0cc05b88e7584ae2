"""The schema of params.yaml but for protocol and resources: models, variants, studies, all of it.

Models, variants and studies lay partial sections over the protocol's; `overlay_of` makes their
classes.
"""

from __future__ import annotations

import math
from functools import cached_property
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    Discriminator,
    Field,
    Tag,
    field_validator,
    model_validator,
)

from geosd.config.grids import Grid, candidates_of_grids, grids_of_variants
from geosd.config.overlays import is_family_overlay, merge_overlay, overlay_of
from geosd.config.pictures import refuse_pictures
from geosd.config.protocol_schema import Protocol, TrainingProtocol
from geosd.config.resources_schema import ModelResources, StudyResources
from geosd.config.schema_base import (
    Ascending,
    Distinct,
    ExtendableSchema,
    Name,
    Scalar,
    SectionSchema,
    Seed,
    Words,
    given_schema_values,
    optional_schema,
)

Axis = Annotated[str, Field(pattern=r"^[a-z_]+(\.[a-z_]+)*$", max_length=64)]
Values = Annotated[list[Scalar], Field(min_length=1), Distinct]
Axes = Annotated[dict[Axis, Values], Field(min_length=1)]
SeveralAxes = Annotated[list[Axes], Field(min_length=1)]
MOST_CANDIDATES = 10_000
Names = Annotated[list[Name], Field(min_length=1), Distinct]
Kind = Literal[
    "main", "ablation", "privilege", "ladder", "stepsize", "rates", "selection", "readings"
]
Tracker = Literal["tensorboard", "wandb", "trackio"]
About = Annotated[Words, AfterValidator(refuse_pictures)]
PI_0 = "pi_0"
"""Name of the variant that is the base model, not trained."""
DEFAULT = "default"
"""Name of the resources of every model that has none of its own."""


TrainingOverlay = overlay_of(TrainingProtocol)


class SectionsParamsSchema(overlay_of(Protocol)):
    """Changes by entries of params.yaml to the protocol's sections, each with some of its keys."""

    training: TrainingOverlay = optional_schema(None)


class ModelParamsSchema(ExtendableSchema, SectionsParamsSchema):
    """An entry of `models` in params.yaml: what a model's size or family changes."""

    about: Words
    """One line: what the model is."""


class VariantParamsSchema(ExtendableSchema):
    """An entry of `variants` in params.yaml: a named set of changes of the training section."""

    training: TrainingOverlay | None
    """Changes by the variant; null where nothing is trained (pi_0)."""


class StudyVariantParamsSchema(SectionSchema):
    """An entry of a study's `variants` in params.yaml: what the study changes in a variant."""

    training: TrainingOverlay | None = optional_schema(None)
    """Keys that differ in this study, such as a learning rate that a selection chose."""
    training_by_model: dict[Name, TrainingOverlay] | None = optional_schema(None)
    """Model -> keys that differ on it, over those of `training`; every model of the study has an
    entry."""

    @model_validator(mode="after")
    def _changes_something(self) -> StudyVariantParamsSchema:
        if self.training is None and self.training_by_model is None:
            raise ValueError("it needs training or training_by_model")
        return self

    def on(self, model: str) -> dict[str, Any]:
        """The keys of the training that differ on a model."""
        on_model = (self.training_by_model or {}).get(model)
        return merge_overlay(given_schema_values(self.training), given_schema_values(on_model))


class StagesParamsSchema(SectionSchema):
    """Stages of a study's seeds, after each of which its claims are judged. docs/lean.md."""

    seeds: Annotated[
        list[Annotated[int, Field(ge=2, le=1000)]], Field(min_length=2), Distinct, Ascending
    ]
    """Numbers of seeds, ascending; a study of fewer seeds than the last is an earlier stage."""
    families: Annotated[int, Field(gt=0, le=100)]
    """Models of the whole design, which share the level of a primary claim; a later stage may leave
    out those that are decided."""


class StudyParamsSchema(ExtendableSchema, SectionsParamsSchema):
    """An entry of `studies` in params.yaml: what is run, and what differs from the protocol."""

    about: About
    """One line: what the study is for and what it costs; a picture in it is an .svg or .png file
    below figures/. Not inherited."""
    kind: Kind
    """The study's design, which decides the claims that it judges; the models of a
    `ladder` are sizes of one architecture, from small to large. Not inherited."""
    verdicts: bool = optional_schema(False)
    """Whether the study is meant for verdicts on the paper's claims: its models, its seeds and its
    learning rates are enough for them. Without, the ledger has the estimates alone. Not
    inherited."""
    claims_on_costs: bool = optional_schema(False)
    """Whether the claims on costs, which no run decides, are judged here. Not inherited."""
    models: Names
    """Models, in the order of the tables."""
    methods: Names
    """Variants, in the order of the tables."""
    seeds: Annotated[list[Seed], Field(min_length=1, max_length=1000), Distinct]
    """Seeds; one run each."""
    draws: Annotated[int, Field(gt=0, le=1000)] = optional_schema(1)
    """Draws of each base model: the run of seed s starts from draw s % draws. More than one needs
    base models that the repository ships, in base_models/."""
    outputs: Names
    """Rules of the tables, figures and ledgers that the study ends in."""
    stages: StagesParamsSchema | None = optional_schema(None)
    """When claims are judged, with bounds that are fixed in advance; null: once, with all seeds."""
    keep: Literal["weights", "samples"] = optional_schema("weights")
    """What stays on disk of a finished run: its weights and snapshots, or its log, its samples and
    what is measured alone. `samples` removes weights once every study of this file has made from
    them what it makes; a study that makes more of the run later trains it again."""
    resources: dict[Name, StudyResources] | None = optional_schema(None)
    """Model -> what its jobs ask for in this study, over its entry of `resources`: another
    placement for other GPUs. No result depends on it."""
    variants: dict[Name, StudyVariantParamsSchema | None] | None = optional_schema(None)
    """What this study changes in a variant, such as the learning rates that `make select-rates`
    prints. null takes an inherited entry away; in the place of all entries, all of them."""
    grid: dict[Name, Axes | SeveralAxes] = Field(default_factory=dict)
    """Candidates: variant, key of its training section (dots lead into sections), values. Every
    point of a variant's grid, or of each of its grids, is run as a variant of its own. A grid
    replaces an inherited one whole; {} takes it away."""

    @field_validator("grid")
    @classmethod
    def _candidates_differ(cls, grid: Grid) -> Grid:
        """Refuse a grid of too many points, or with two points of one name."""
        sizes = [math.prod(map(len, axes.values())) for _, axes in grids_of_variants(grid)]
        if sum(sizes) > MOST_CANDIDATES:
            raise ValueError(f"{sum(sizes)} candidates are more than {MOST_CANDIDATES}")
        if sum(sizes) != len(candidates_of_grids(grid)):
            raise ValueError("two points of the grids have one name; each point stands once")
        return grid

    @property
    def own_entries(self) -> dict[str, StudyVariantParamsSchema]:
        """Variant -> the study's own entry for it."""
        entries = self.variants or {}
        return {name: entry for name, entry in entries.items() if entry is not None}


class FamilyParamsSchema(SectionSchema):
    """An entry of `studies` in params.yaml of the kind `family`: what is shown over several."""

    about: About
    """One line: what the family shows; a picture in it is an .svg or .png file below figures/."""
    kind: Literal["family"]
    """That it is no study: it runs nothing, and is drawn from what its studies found."""
    of: Names
    """Studies of this file that it shows, in the order of its tables."""
    outputs: Names
    """Rules of the tables, figures and ledgers over the studies."""


Entry = Annotated[
    Annotated[StudyParamsSchema, Tag("a study")] | Annotated[FamilyParamsSchema, Tag("a family")],
    Discriminator(lambda entry: "a family" if is_family_overlay(entry) else "a study"),
]


class Params(SectionSchema):
    """The schema of the whole file params.yaml."""

    study: Name
    """The study that is run where the command line names none (`--config study=NAME`)."""
    trackers: Annotated[list[Tracker], Distinct]
    """Trackers that get training curves, as the step log does. No result depends on it: it is a
    setting of no rule."""
    protocol: Protocol
    """The paper's protocol, each value with its place in the paper."""
    models: Annotated[dict[Name, ModelParamsSchema], Field(min_length=1)]
    """Models by name."""
    resources: dict[Name, ModelResources]
    """Requests of jobs, by model; `default`, which must be there, is for those not named."""
    variants: Annotated[dict[Name, VariantParamsSchema], Field(min_length=1)]
    """Variants by name."""
    entries: Annotated[dict[Name, Entry], Field(min_length=1, alias="studies")]
    """Studies, and families of them, by name."""

    @field_validator("resources")
    @classmethod
    def _has_default(cls, resources: dict[str, ModelResources]) -> dict[str, ModelResources]:
        if DEFAULT not in resources:
            raise ValueError(f"the entry `{DEFAULT}` is missing")
        return resources

    @cached_property
    def studies(self) -> dict[str, StudyParamsSchema]:
        """The entries of `studies` that are studies."""
        return {
            name: one for name, one in self.entries.items() if isinstance(one, StudyParamsSchema)
        }

    @cached_property
    def families(self) -> dict[str, FamilyParamsSchema]:
        """The entries of `studies` that are families."""
        return {
            name: one for name, one in self.entries.items() if isinstance(one, FamilyParamsSchema)
        }

    def resources_of(self, model: str) -> ModelResources:
        """The entry of `resources` in params.yaml that holds for a model."""
        return self.resources.get(model, self.resources[DEFAULT])
