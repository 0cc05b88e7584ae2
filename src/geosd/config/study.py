"""A study resolved: what params.yaml says of it, laid over the paper's protocol.

The order of the layers is that of `geosd.config.overlays`.
"""

import json
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

from geosd.config.errors import ConfigError, raise_error_if_unknown
from geosd.config.grids import candidates_of_grids
from geosd.config.overlays import merge_overlay
from geosd.config.params_schema import Params, StudyParamsSchema
from geosd.config.resources_schema import ModelResources
from geosd.config.schema_base import given_schema_values
from geosd.models.shipped_base_models import is_shipped_base_model

LENGTH = ("steps", "snapshots")
"""Settings that may differ between a run and a longer one that begins with it."""


@dataclass(frozen=True)
class Study:
    """A study resolved: its models, methods, seeds and outputs, and the values of each section.

    The fields are documented in `StudyParamsSchema`; sections are resolved from all of params.yaml.
    """

    name: str
    models: tuple[str, ...]
    methods: tuple[str, ...]
    """Variants, in the order of the tables; candidates of a grid follow."""
    seeds: tuple[int, ...]
    draws: int
    outputs: tuple[str, ...]
    params: Params
    noun: ClassVar[str] = "study"

    @property
    def overlay(self) -> StudyParamsSchema:
        """The study's entry in params.yaml, inherited keys included."""
        return self.params.studies[self.name]

    def draw(self, seed: int) -> int:
        """The draw of the base model that the run of a seed starts from."""
        return seed % self.draws

    @property
    def base_draws(self) -> tuple[int, ...]:
        """The draws of each base model that runs of the study start from, in ascending order."""
        return tuple(sorted({self.draw(seed) for seed in self.seeds}))

    def shipped_base(self, model: str, draw: int) -> str | None:
        """The folder of a draw of a base model, where the repository ships it; else None."""
        base = self.section("base", model)
        folder = (base["checkpoint"] or {}).get("folder") or ""
        shipped = base["source"] == "released" and is_shipped_base_model(folder)
        return f"{folder}/{draw}" if shipped else None

    @cached_property
    def candidates(self) -> dict[str, tuple[str, dict[str, Any]]]:
        """The candidates of the study's grids: name -> variant, and what is laid over it."""
        return candidates_of_grids(self.overlay.grid)

    def variant_of(self, method: str) -> str:
        """The variant that a method is, or is a candidate of."""
        return self.candidates[method][0] if method in self.candidates else method

    @property
    def trained(self) -> tuple[str, ...]:
        """The methods of the study that train, i.e. all but pi_0."""
        grid, variants = self.candidates, self.params.variants
        return tuple(
            name for name in self.methods if name in grid or variants[name].training is not None
        )

    @cached_property
    def early_stops(self) -> dict[str, str]:
        """Variants that begin a longer run of the study -> the longest such run's variant.

        Rates are constant after warm-up and draws are seeded by their step: the first k steps of a
        run are, bit for bit, a run of k steps. A variant with snapshots of its own is none.
        """
        trainings = {
            variant: [self.training(model, variant) for model in self.models]
            for variant in self.trained
        }
        lengths = {
            variant: [training["steps"] for training in on_models]
            for variant, on_models in trainings.items()
        }
        if len({tuple(steps) for steps in lengths.values()}) < 2:
            return {}  # no run is longer than another
        by_recipe: dict[str, dict[str, list[int]]] = {}
        for variant, on_models in trainings.items():
            recipes = [{k: v for k, v in one.items() if k not in LENGTH} for one in on_models]
            recipe = json.dumps(recipes, sort_keys=True)
            by_recipe.setdefault(recipe, {})[variant] = lengths[variant]
        stops: dict[str, str] = {}
        for same_recipe in by_recipe.values():
            longest = max(same_recipe, key=same_recipe.__getitem__)
            for variant, steps in same_recipe.items():
                shorter = all(a < b for a, b in zip(steps, same_recipe[longest], strict=True))
                if shorter and not self._has_snapshots(variant):
                    stops[variant] = longest
        return stops

    def _has_snapshots(self, variant: str) -> bool:
        """Whether a variant's training keeps weights on the way, on any model."""
        return any(self.training(model, variant)["snapshots"] for model in self.models)

    def section(self, name: str, model: str | None = None) -> dict[str, Any]:
        """One section resolved: the protocol, the model over it, and the study over both.

        The dictionary is the caller's own; what is nested in it is for reading alone.
        """
        key = (name, model)
        if key not in self._sections:
            self._sections[key] = self._resolve_section(name, model)
        return dict(self._sections[key])

    def training(self, model: str, variant: str) -> dict[str, Any]:
        """The training section resolved for one variant, or for one candidate of a grid.

        The dictionary is the caller's own; what is nested in it is for reading alone.
        """
        key = (model, variant)
        if key not in self._trainings:
            self._trainings[key] = self._resolve_training(model, variant)
        return dict(self._trainings[key])

    # A check of params.yaml asks for the sections of its studies some thousand times.
    @cached_property
    def _sections(self) -> dict[tuple[str, str | None], dict[str, Any]]:
        return {}

    @cached_property
    def _trainings(self) -> dict[tuple[str, str], dict[str, Any]]:
        return {}

    def _resolve_section(self, name: str, model: str | None) -> dict[str, Any]:
        values = given_schema_values(getattr(self.params.protocol, name))
        if model:
            values = merge_overlay(
                values, given_schema_values(getattr(self.params.models[model], name))
            )
        values = merge_overlay(values, given_schema_values(getattr(self.overlay, name)))
        if name == "evaluation" and values["coverage"] is None:
            return {**values, "coverage": values["samples"]}
        return values

    def resources_of(self, model: str) -> ModelResources:
        """What the jobs of a model ask for: its entry of `resources`, and the study over it.

        Raises:
            ValidationError: The two do not fit together.
        """
        entry = self.params.resources_of(model)
        changes = given_schema_values((self.overlay.resources or {}).get(model))
        if not changes:
            return entry
        return ModelResources.model_validate(merge_overlay(given_schema_values(entry), changes))

    def _resolve_training(self, model: str, variant: str) -> dict[str, Any]:
        if variant in self.candidates:
            variant, point = self.candidates[variant]
            return merge_overlay(self.training(model, variant), point)
        values = self.section("training", model)
        values = merge_overlay(values, given_schema_values(self.params.variants[variant].training))
        entry = self.overlay.own_entries.get(variant)
        return merge_overlay(values, entry.on(model)) if entry else values


def resolve_study(params: Params, study: str | None = None) -> Study:
    """Resolve the study of a name; where none is given, the one that params.yaml names.

    Raises:
        ConfigError: No study has the name, or a family has it.
    """
    name = params.study if study is None else str(study)
    if name in params.families:
        members = params.families[name].of
        raise ConfigError(
            f"{name} is a family: it shows studies, and has no runs of its own.\nHint: name one of"
            f" its studies: {', '.join(members)}."
        )
    raise_error_if_unknown("study", name, params.entries)
    overlay = params.studies[name]
    methods = (*overlay.methods, *candidates_of_grids(overlay.grid))
    models, seeds, outputs = tuple(overlay.models), tuple(overlay.seeds), tuple(overlay.outputs)
    return Study(name, models, methods, seeds, overlay.draws, outputs, params)
