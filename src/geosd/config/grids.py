"""Grids of studies: every candidate of a grid, and the points of a sweep."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from functools import reduce
from typing import TYPE_CHECKING, Any

from geosd.config.inheritance import merge

if TYPE_CHECKING:
    from geosd.config.study import Study

Axes = Mapping[str, Sequence[Any]]
Grid = Mapping[str, Axes | Sequence[Axes]]


def grids_of_variants(grid: Grid) -> list[tuple[str, Axes]]:
    """Each grid of a study with its variant, one after the other where a variant has several."""
    return [
        (variant, axes)
        for variant, given in grid.items()
        for axes in ([given] if isinstance(given, Mapping) else given)
    ]


def grid_candidates(grid: Grid) -> dict[str, tuple[str, dict[str, Any]]]:
    """The candidates of a study's grids: a variant with one value of each axis laid over it.

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
    for variant, axes in grids_of_variants(grid):
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
    """The points of a sweep over keys that grids vary: run, variant, values, by model.

    A variant is swept if its grid varies some of the keys and nothing else. Its points are those
    candidates, and the variant itself where it is among the study's methods: it is one more point,
    at the study's own values. Points that agree in variant and values are one run; the candidate
    stands for it.
    Keys are top keys of the training section, e.g. "privilege".
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
    """Candidates of grids that differ from their variant in one key at most.

    The key is one of the training section. A grid over two keys has such candidates too: those
    where the other key has the variant's value.
    Candidates are compared on the study's first model: a grid has the same values on all.

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
