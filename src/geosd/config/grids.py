"""The grids of a study: each point is a candidate, a variant that is trained and judged as any."""

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

from geosd.config.overlays import merge_overlay

Axes = Mapping[str, Sequence[Any]]
Grid = Mapping[str, Axes | Sequence[Axes]]


def grids_of_variants(grid: Grid) -> list[tuple[str, Axes]]:
    """Each grid of a study with its variant, one after the other where a variant has several."""
    return [
        (variant, axes)
        for variant, given in grid.items()
        for axes in ([given] if isinstance(given, Mapping) else given)
    ]


def candidates_of_grids(grid: Grid) -> dict[str, tuple[str, dict[str, Any]]]:
    """Name of each candidate of a study's grids -> its variant, and what is laid over its training.

    A grid is variant -> key of its training section (dots lead into sections) -> values; or variant
    -> several such grids, each with points of its own.

    Example:
        >>> grid = {"learning_rate": [1e-06], "optimiser.kfac.damping": [0.1]}
        >>> candidates_of_grids({"fwdkl": grid})
        {'fwdkl-learning_rate_1e-06-damping_0.1': ('fwdkl', {'learning_rate': 1e-06, \
'optimiser': {'kfac': {'damping': 0.1}}})}
    """
    points = {}
    for variant, axes in grids_of_variants(grid):
        for values in itertools.product(*axes.values()):
            point = dict(zip(axes, values, strict=True))
            words = [f"{key.rpartition('.')[2]}_{value}" for key, value in point.items()]
            changed: dict[str, Any] = {}
            for key, value in point.items():
                for name in reversed(key.split(".")):
                    value = {name: value}
                changed = merge_overlay(changed, value)
            points["-".join([variant, *words])] = (variant, changed)
    return points
