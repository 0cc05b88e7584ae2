"""A study resolved: what params.yaml says of it, laid over the paper's protocol.

The order of the layers is that of `geosd.config.inheritance`.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from typing import Any

from geosd.config.errors import ConfigError, alternatives
from geosd.config.inheritance import merge
from geosd.config.params_schema import Params, StudySchema, given_values

Axes = Mapping[str, Sequence[Any]]

LENGTH = ("steps", "snapshots")
"""What may differ between a run and a longer one that begins with it."""


@dataclass(frozen=True)
class Study:
    """What is run under one name.

    Attributes:
        name: The study's name, the first folder of all its results.
        models: Models, in the order of the tables.
        methods: Variants, in the order of the tables; candidates of a grid follow.
        seeds: Seeds; one run each.
        outputs: Rules of the tables, figures and ledgers that it ends in.
        params: All of params.yaml, from which each section is resolved.
    """

    name: str
    models: tuple[str, ...]
    methods: tuple[str, ...]
    seeds: tuple[int, ...]
    outputs: tuple[str, ...]
    params: Params

    @property
    def overlay(self) -> StudySchema:
        """What params.yaml says of the study, inherited keys included."""
        return self.params.studies[self.name]

    @cached_property
    def candidates(self) -> dict[str, tuple[str, dict[str, Any]]]:
        """The points of the study's grids: name -> variant, and what is laid over it."""
        return grid_candidates(self.overlay.grid)

    @property
    def trained(self) -> tuple[str, ...]:
        """The methods that train, i.e. all but pi_0."""
        grid, variants = self.candidates, self.params.variants
        return tuple(
            name for name in self.methods if name in grid or variants[name].training is not None
        )

    @cached_property
    def early_stops(self) -> dict[str, str]:
        """Variants that are the beginning of longer runs of the study -> the longest of these.

        A step depends on the settings, on the seed and on the steps before it, and not on how many
        follow: the rate is constant after its warm-up, and every draw is seeded by its step. So the
        first k steps of a run are, bit for bit, a run of k steps. A variant that keeps snapshots of
        its own is trained like any other.
        """
        lengths: dict[str, dict[str, list[int]]] = {}
        for variant in self.trained:
            trainings = [self.training(model, variant) for model in self.models]
            recipes = [{k: v for k, v in one.items() if k not in LENGTH} for one in trainings]
            same_recipe = lengths.setdefault(json.dumps(recipes, sort_keys=True), {})
            same_recipe[variant] = [training["steps"] for training in trainings]
        return {
            variant: longest
            for same_recipe in lengths.values()
            for longest in [max(same_recipe, key=lambda name: same_recipe[name])]
            for variant, steps in same_recipe.items()
            if all(a < b for a, b in zip(steps, same_recipe[longest], strict=True))
            and not any(self.training(model, variant)["snapshots"] for model in self.models)
        }

    def section(self, name: str, model: str | None = None) -> dict[str, Any]:
        """One section: the protocol, the model over it, and the study over both."""
        values = given_values(getattr(self.params.protocol, name))
        if model:
            values = merge(values, given_values(getattr(self.params.models[model], name)))
        values = merge(values, given_values(getattr(self.overlay, name)))
        if name == "evaluation" and values["coverage"] is None:
            return {**values, "coverage": values["samples"]}
        return values

    def training(self, model: str, variant: str) -> dict[str, Any]:
        """The training section of one variant, or of one candidate of a grid."""
        if variant in self.candidates:
            variant, point = self.candidates[variant]
            return merge(self.training(model, variant), point)
        values = self.section("training", model)
        values = merge(values, given_values(self.params.variants[variant].training))
        changes = self.overlay.variants.get(variant)
        return merge(values, given_values(changes.training) if changes else {})


def resolve(params: Params, study: str | None = None) -> Study:
    """The study of a name; the file's own choice where none is given.

    Raises:
        ConfigError: There is no such study.
    """
    name = params.study if study is None else str(study)
    check_name("study", name, params.studies)
    overlay = params.studies[name]
    methods = (*overlay.methods, *grid_candidates(overlay.grid))
    models, seeds, outputs = tuple(overlay.models), tuple(overlay.seeds), tuple(overlay.outputs)
    return Study(name, models, methods, seeds, outputs, params)


def check_name(kind: str, name: object, allowed: Iterable[object]) -> None:
    """Refuse a name that params.yaml does not define.

    Raises:
        ConfigError: Says which names there are.
    """
    if name not in allowed:
        raise ConfigError(
            f"{name!r} is no {kind}. {alternatives(name, list(map(str, allowed)))}\n"
            "Hint: names are defined in params.yaml and are case-sensitive."
        )


def grid_candidates(
    grid: Mapping[str, Axes | Sequence[Axes]],
) -> dict[str, tuple[str, dict[str, Any]]]:
    """Every point of every variant's grid: the variant with one value of each axis laid over it.

    A sweep is nothing but variants. The rules that train and judge a variant train and judge these,
    and know nothing of sweeps.

    Args:
        grid: Variant -> key of its training section (dots lead into sections) -> values; or
            variant -> several such grids, each with points of its own.

    Returns:
        Name of the candidate -> the variant, and what the candidate changes in its training.

    Example:
        >>> grid_candidates({"fwdkl": {"learning_rate": [1e-06], "optimiser.kfac.damping": [0.1]}})
        {'fwdkl-learning_rate_1e-06-damping_0.1': ('fwdkl', {'learning_rate': 1e-06, \
'optimiser': {'kfac': {'damping': 0.1}}})}
    """
    points = {}
    for variant, given in grid.items():
        for axes in [given] if isinstance(given, Mapping) else given:
            for values in itertools.product(*axes.values()):
                point = dict(zip(axes, values, strict=True))
                words = [f"{key.rpartition('.')[2]}_{value}" for key, value in point.items()]
                nested = map(_nested, point.keys(), point.values())
                points["-".join([variant, *words])] = (variant, reduce(merge, nested, {}))
    return points


def _nested(key: str, value: Any) -> dict[str, Any]:
    """A value under a dotted key as mappings in one another."""
    for name in reversed(key.split(".")):
        value = {name: value}
    return value


def sweep_points(study: Study, *keys: str) -> dict[str, list[dict[str, Any]]]:
    """For each model the runs of a sweep: run, variant and the value of each key.

    A variant is swept if its grid varies some of the keys and nothing else. Its points are those
    candidates, and the variant itself where it is among the study's methods: it is one more point,
    at the study's own values. Points that agree in variant and values are one run; the candidate
    stands for it.

    Args:
        study: The study.
        keys: Top keys of the training section, e.g. "privilege".
    """
    swept = {
        name: variant
        for name, (variant, changed) in study.candidates.items()
        if changed.keys() <= set(keys)
    }
    runs = swept | {name: name for name in study.methods if name in swept.values()}
    points: dict[str, list[dict[str, Any]]] = {}
    for model in study.models:
        distinct: dict[tuple[Any, ...], dict[str, Any]] = {}
        for run, variant in runs.items():
            training = study.training(model, run)
            values = {key: training[key] for key in keys}
            point = {"run": run, "variant": variant, **values}
            distinct.setdefault((variant, *values.values()), point)
        points[model] = list(distinct.values())
    return points


def values_of_candidates(study: Study, key: str) -> dict[str, dict[str, Any]]:
    """Candidates that differ from their variant in one key of its training section, or not at all.

    A grid over two keys has such candidates too: those where the other key has the variant's value.
    Candidates are compared on the study's first model: a selection chooses one value for all.

    Args:
        study: A study with a grid.
        key: A key of the training section, for example `learning_rate`.

    Returns:
        Variant -> candidate -> its value of the key, in the grid's order; variants whose grid never
        changes the key are left out.
    """
    model = study.models[0]
    values: dict[str, dict[str, Any]] = {}
    for candidate, (variant, point) in study.candidates.items():
        changed, plain = study.training(model, candidate), study.training(model, variant)
        if key in point and {**changed, key: None} == {**plain, key: None}:
            values.setdefault(variant, {})[candidate] = changed[key]
    return values
