"""How values are laid over others: entries over those that they extend, studies over models.

The order, each over the ones before it:

    protocol < model < study < variant < the study's own entry for the variant < candidate of a grid

Model, study and variant each stand for their whole chain of `extends`, the last of the chain first.
"""

import typing
from collections.abc import Mapping
from functools import cache
from typing import Annotated, Any

from pydantic import Field, create_model

from geosd.config.errors import alternatives_in_error
from geosd.config.schema_base import SectionSchema, StrictSchema

EXTENDABLE = {"models": "model", "resources": "entry", "variants": "variant", "studies": "study"}
"""Sections whose entries may extend one another, and what an entry is called."""
NOT_INHERITED = ("extends", "about", "kind", "verdicts", "claims_on_costs")
"""Keys that every entry says for itself."""
FAMILY = "family"
"""The kind of an entry of `studies` that shows others, and runs nothing."""
REPLACED = ("grid",)
"""Mappings that are replaced whole, as lists are."""
SEARCH_WORLD = "search"
"""How the name of each source of the search world begins."""
OF_SEARCH_WORLD = ("conflict",)
"""Keys of `data` that the search world alone reads."""

Tree = dict[str, Any]
Problem = tuple[tuple[str, ...], str]


def merge_overlay(below: Tree, above: Tree) -> Tree:
    """Merge two mappings: one is laid over the other key by key; lists are replaced.

    An objective of another name replaces the one below whole: its hyperparameters are another
    loss's and would mean nothing here. Likewise problems of another source do not inherit a setting
    of the search world.
    """
    if "name" in below and above.get("name", below["name"]) != below["name"]:
        return dict(above)
    merged = dict(below)
    if not str(above.get("source", SEARCH_WORLD)).startswith(SEARCH_WORLD):
        merged |= {key: None for key in OF_SEARCH_WORLD if key in merged}
    for key, value in above.items():
        inner = merged.get(key)
        both = isinstance(inner, dict) and isinstance(value, dict) and key not in REPLACED
        merged[key] = merge_overlay(inner, value) if both else value
    return merged


def inherit_overlays(values: Any) -> tuple[Any, dict[tuple[str, ...], str], list[Problem]]:
    """The content with every entry over the one that its `extends` names, parents, and mistakes.

    What is of the wrong kind in the file's content is left for the schema to report.
    """
    if not isinstance(values, dict):
        return values, {}, []
    parents: dict[tuple[str, ...], str] = {}
    problems: list[Problem] = []
    content = dict(values)
    for section in EXTENDABLE:
        entries = values.get(section)
        if not isinstance(entries, dict):
            continue
        merged: Tree = {}
        for name in entries:
            chain = _chain(section, name, entries, problems)
            merged[name] = _merged(entries, chain)
            if len(chain) > 1:
                parents[section, name] = chain[1]
        content[section] = merged
    return _with_objectives_named(content), parents, problems


def _with_objectives_named(content: Tree) -> Tree:
    """The content where a study's own entries name the objective that they change a key of."""
    for name in _mapping(content, "studies"):
        for variant, entry in _mapping(content, "studies", name, "variants").items():
            below = _mapping(content, "variants", variant, "training", "objective").get("name")
            for training in _trainings(entry):
                objective = _mapping(entry, *training, "objective")
                if objective and below and "name" not in objective:
                    # In a copy: by an anchor of YAML two variants may share what stands here.
                    named = {**objective, "name": below}
                    place = ("studies", name, "variants", variant, *training, "objective")
                    content = _with(content, place, named)
    return content


def _trainings(entry: Any) -> list[tuple[str, ...]]:
    """Where a study's own entry for a variant may have keys of the training."""
    by_model = _mapping(entry, "training_by_model")
    return [("training",), *(("training_by_model", model) for model in by_model)]


def _mapping(values: Any, *path: str) -> Tree:
    """The mapping at a path; an empty one where there is none."""
    for key in path:
        values = values.get(key) if isinstance(values, dict) else None
    return values if isinstance(values, dict) else {}


def _with(values: Tree, place: tuple[str, ...], value: Any) -> Tree:
    """The mappings with another value at a place; those on the way are copies."""
    key, *rest = place
    inner = _with(values[key], tuple(rest), value) if rest else value
    return {**values, key: inner}


def _chain(section: str, name: str, entries: Tree, problems: list[Problem]) -> list[str]:
    """An entry and those that it extends, the nearest first."""
    kind = EXTENDABLE[section]
    chain = [name]
    while True:
        parent = _mapping(entries, chain[-1]).get("extends")
        if not isinstance(parent, str):  # none, or of a type that the schema refuses
            break
        path = (section, chain[-1], "extends")
        if parent not in entries:
            message = f"{parent} is no {kind} of this file."
            problems.append((path, f"{message} {alternatives_in_error(parent, list(entries))}"))
            break
        if is_family_overlay(entries[parent]):
            message = f"{parent} is a family, which no entry extends; name one of its studies."
            problems.append((path, message))
            break
        if is_family_overlay(entries[chain[-1]]):
            message = f"{chain[-1]} is a family, which extends no entry; take the line away."
            problems.append((path, message))
            break
        if parent in chain:
            circle = " extends ".join([*chain[chain.index(parent) :], parent])
            problems.append((path, f"{circle}: one {kind} of a circle must extend none."))
            break
        chain.append(parent)
    return chain


def is_family_overlay(entry: object) -> bool:
    """Whether an entry of `studies` in the file is a family, also one with a mistake."""
    return isinstance(entry, Mapping) and (entry.get("kind") == FAMILY or "of" in entry)


def _merged(entries: Tree, chain: list[str]) -> Any:
    """An entry over those that it extends."""
    merged = entries[chain[-1]]
    for name in reversed(chain[:-1]):
        if not (isinstance(merged, dict) and isinstance(entries[name], dict)):
            return entries[name]
        below = {key: value for key, value in merged.items() if key not in NOT_INHERITED}
        merged = merge_overlay(below, entries[name])
    if isinstance(merged, dict) and isinstance(merged.get("variants"), dict):
        # `name: null` takes an inherited entry away
        variants = {name: entry for name, entry in merged["variants"].items() if entry is not None}
        merged = {**merged, "variants": variants}
    return merged


@cache
def overlay_of(section: type[SectionSchema]) -> type[StrictSchema]:
    """The overlay of a schema's class: the same keys with the same bounds, each optional."""
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
    made = create_model(f"{section.__name__}Overlay", __base__=StrictSchema, **fields)
    made.__doc__ = f"{section.__doc__} Keys left out are inherited."
    return made


def _with_overlays(annotation: Any) -> Any:
    """The annotation with every section inside it replaced by its overlay."""
    if isinstance(annotation, type) and issubclass(annotation, SectionSchema):
        return overlay_of(annotation)
    arguments = typing.get_args(annotation)
    if type(None) in arguments:
        return typing.Optional[_with_overlays(arguments[0])]  # noqa: UP045 (built, not written)
    return annotation
