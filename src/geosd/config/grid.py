"""Candidates: a variant with one value of a grid laid over it, under a name that says so.

A sweep is nothing but variants. The rules that train and judge a variant train and judge these, and
know nothing of sweeps.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

Axes = Mapping[str, Sequence[Any]]


def candidates(grid: Mapping[str, Axes | Sequence[Axes]]) -> dict[str, tuple[str, dict[str, Any]]]:
    """Every point of every variant's grid.

    Args:
        grid: Variant -> key of its training section (dots lead into sections) -> values; or
            variant -> several such grids, each with points of its own.

    Returns:
        Name of the candidate -> the variant, and what the candidate changes in its training.

    Example:
        >>> candidates({"fwdkl": {"learning_rate": [1e-06], "optimiser.kfac.damping": [0.001]}})
        {'fwdkl-learning_rate_1e-06-damping_0.001': ('fwdkl', {'learning_rate': 1e-06, \
'optimiser': {'kfac': {'damping': 0.001}}})}
    """
    found = {}
    for variant, given in grid.items():
        for axes in [given] if isinstance(given, Mapping) else given:
            for point in itertools.product(*axes.values()):
                chosen = dict(zip(axes, point, strict=True))
                words = [f"{key.rpartition('.')[2]}_{value}" for key, value in chosen.items()]
                found["-".join([variant, *words])] = (variant, _nested(chosen))
    return found


def _nested(dotted: Mapping[str, Any]) -> dict[str, Any]:
    tree: dict[str, Any] = {}
    for key, value in dotted.items():
        *outer, leaf = key.split(".")
        branch = tree
        for name in outer:
            branch = branch.setdefault(name, {})
        branch[leaf] = value
    return tree


def flat(value: Any, name: str = "") -> dict[str, Any]:
    """Nested values by dotted names."""
    if not isinstance(value, dict) or not value:
        return {name: value}
    return {
        key: inner
        for part, below in value.items()
        for key, inner in flat(below, f"{name}.{part}" if name else part).items()
    }
