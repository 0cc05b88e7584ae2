"""How values are laid over others: entries over those that they extend, grids over variants.

The order, each over the ones before it:

    protocol < model < study < variant < the study's own entry for the variant < candidate of a grid

Model, study and variant each stand for their whole chain of `extends`, the last of the chain first.
A rate that a selection chose lies right below the study's own entry for a variant.
"""

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

from geosd.config.errors import alternatives
from geosd.config.schema_base import Extendable

EXTENDABLE = {"models": "model", "resources": "entry", "variants": "variant", "studies": "study"}
"""Sections whose entries may extend one another, and what an entry is called."""
NOT_INHERITED = ("extends", "about", "kind", "verdicts", "claims_on_costs")
"""Keys that every entry says for itself."""
REPLACED = ("grid",)
"""Mappings that are replaced whole, as lists are."""

Tree = dict[str, Any]
Problem = tuple[tuple[str, ...], str]
Axes = Mapping[str, Sequence[Any]]
Grid = Mapping[str, Axes | Sequence[Axes]]


def merge(below: Tree, above: Tree) -> Tree:
    """Merge two mappings: one is laid over the other key by key; lists are replaced.

    An objective of another name replaces the one below whole: its hyperparameters are another
    loss's and would mean nothing here.
    """
    if "name" in below and above.get("name", below["name"]) != below["name"]:
        return dict(above)
    merged = dict(below)
    for key, value in above.items():
        inner = merged.get(key)
        both = isinstance(inner, dict) and isinstance(value, dict) and key not in REPLACED
        merged[key] = merge(inner, value) if both else value
    return merged


def inherit(values: Any) -> tuple[Any, dict[tuple[str, ...], str], list[Problem]]:
    """The content with every entry over the one that its `extends` names, parents, and mistakes.

    What is of the wrong kind in the file's content is left for the schema to report.
    """
    if not isinstance(values, dict):
        return values, {}, []
    parents: dict[tuple[str, ...], str] = {}
    problems: list[Problem] = []
    content = dict(values)
    for section in EXTENDABLE:
        if isinstance(entries := values.get(section), dict):
            chains = {name: _chain(section, name, entries, problems) for name in entries}
            content[section] = {name: _merged(entries, chains[name]) for name in entries}
            parents |= {(section, name): c[1] for name, c in chains.items() if len(c) > 1}
    for name in _mapping(content, "studies"):
        for variant in _mapping(content, "studies", name, "variants"):
            place = ("studies", name, "variants", variant, "training", "objective")
            below = _mapping(content, "variants", variant, "training", "objective").get("name")
            if (objective := _mapping(content, *place)) and below and "name" not in objective:
                objective["name"] = below
    return content, parents, problems


def _mapping(values: Any, *path: str) -> Tree:
    """The mapping at a path; an empty one where there is none."""
    for key in path:
        values = values.get(key) if isinstance(values, dict) else None
    return values if isinstance(values, dict) else {}


def _chain(section: str, name: str, entries: Tree, problems: list[Problem]) -> list[str]:
    """An entry and those that it extends, the nearest first."""
    chain, kind = [name], EXTENDABLE[section]
    while isinstance(entry := entries[chain[-1]], dict):
        parent = entry.get("extends")
        if not isinstance(parent, str):  # none, or of a type that the schema refuses
            break
        path = (section, chain[-1], "extends")
        if parent not in entries:
            message = f"{parent} is no {kind} of this file."
            problems.append((path, f"{message} {alternatives(parent, list(entries))}"))
            break
        if parent in chain:
            circle = " extends ".join([*chain[chain.index(parent) :], parent])
            problems.append((path, f"{circle}: one {kind} of a circle must extend none."))
            break
        chain.append(parent)
    return chain


def _merged(entries: Tree, chain: list[str]) -> Any:
    """An entry over those that it extends."""
    merged = entries[chain[-1]]
    for name in reversed(chain[:-1]):
        if not (isinstance(merged, dict) and isinstance(entries[name], dict)):
            return entries[name]
        below = {key: value for key, value in merged.items() if key not in NOT_INHERITED}
        merged = merge(below, entries[name])
    if isinstance(merged, dict) and isinstance(merged.get("variants"), dict):
        # `name: null` takes an inherited entry away
        variants = {name: entry for name, entry in merged["variants"].items() if entry is not None}
        merged = {**merged, "variants": variants}
    return merged


def lineage(name: str, entries: Mapping[str, Extendable]) -> list[str]:
    """An entry and those that it extends, the nearest first, in a file that was checked."""
    names = [name]
    while (parent := entries[names[-1]].extends) is not None:
        names.append(parent)
    return names


def grids_of_variants(grid: Grid) -> list[tuple[str, Axes]]:
    """Each grid of a study with its variant, one after the other where a variant has several."""
    return [
        (variant, axes)
        for variant, given in grid.items()
        for axes in ([given] if isinstance(given, Mapping) else given)
    ]


def grid_candidates(grid: Grid) -> dict[str, tuple[str, dict[str, Any]]]:
    """Name of each candidate of a study's grids -> its variant, and what is laid over its training.

    A sweep is nothing but variants. The rules that train and judge a variant train and judge these,
    and know nothing of sweeps. A grid is variant -> key of its training section (dots lead into
    sections) -> values; or variant -> several such grids, each with points of its own.

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
            changed: dict[str, Any] = {}
            for key, value in point.items():
                for name in reversed(key.split(".")):
                    value = {name: value}
                changed = merge(changed, value)
            points["-".join([variant, *words])] = (variant, changed)
    return points
