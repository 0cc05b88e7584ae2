"""Load and validate params.yaml: every mistake with its key, what it means, and what is allowed."""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from geosd.config.aliases import NOTES, keys_of_alias
from geosd.config.clashes import clash_over_count, clashes
from geosd.config.errors import KeyPath, Mistake, alternatives_in_error, config_error
from geosd.config.family import family_unmet_needs, resolve_family
from geosd.config.grids import grids_of_variants
from geosd.config.json_schema import key_schema
from geosd.config.overlays import NOT_INHERITED, inherit_overlays
from geosd.config.params_schema import DEFAULT, PI_0, Params, StudyParamsSchema
from geosd.config.planned import planned
from geosd.config.protocol_schema import HYPERPARAMETERS
from geosd.config.schema_base import given_schema_values
from geosd.config.study import resolve_study
from geosd.config.yaml_source import YamlSource, read_yaml_source
from geosd.registry import registered_name_hint
from geosd.reporting.specs import family_specs, output_specs

SCHEMA = "workflow/schemas/params.schema.json"
OUTPUTS = [*output_specs(), "claims"]
"""What a study may end in."""


def load(path: Path | str = "params.yaml") -> Params:
    """Load and check params.yaml, every study; a ConfigError lists all mistakes by key and line.

    A program of a run of the workflow reads the file as it was when the run was planned.
    """
    source = read_yaml_source(planned(path))
    values, parents, problems = inherit_overlays(source.values)
    if problems:
        raise config_error(source.file, [source.mistake(where, text) for where, text in problems])
    source = replace(source, values=values, parents=parents)
    params, mistakes = _checked(source)
    if params is not None:
        mistakes += _of_studies(params, source) or _of_families(params, source)
        mistakes += _names("study", (params.study,), params.studies, (), source)
        allowed = [*params.models, DEFAULT]
        mistakes += _names("model", params.resources, allowed, ("resources",), source)
        mistakes += _base_model(params, source)
        recipe = given_schema_values(params.protocol.training)
        mistakes += [
            source.mistake(("protocol", "training", *key), f"{what} the protocol.")
            for key, what in clash_over_count(recipe, recipe["steps"], params.protocol.data.train)
        ]
    if params is None or mistakes:
        raise config_error(source.file, mistakes)
    return params


def _base_model(params: Params, source: YamlSource) -> list[Mistake]:
    """Mistakes of the variant pi_0, which is the base model: nothing trains it or changes it."""
    mistakes = []
    pi_0 = params.variants.get(PI_0)
    if pi_0 is not None and pi_0.extends is not None:
        message = f"{PI_0} is the base model, which extends no method; take the line away."
        mistakes.append(source.mistake(("variants", PI_0, "extends"), message, inherited=False))
    elif pi_0 is not None and pi_0.training is not None:
        message = f"{PI_0} is the base model, which is not trained; allowed is null."
        mistakes.append(source.mistake(("variants", PI_0, "training"), message))
    for name, study in params.studies.items():
        for variant in study.own_entries:
            if variant in params.variants and params.variants[variant].training is None:
                message = f"{variant} is not trained, so this is never read; take the line away."
                mistakes.append(source.mistake(("studies", name, "variants", variant), message))
    return mistakes


def _of_studies(params: Params, source: YamlSource) -> list[Mistake]:
    """Errors of each study; of a key that others inherit once, with their names."""
    found: dict[Mistake, list[str]] = {}
    for name in params.studies:
        for mistake in _study(params, name, source):
            found.setdefault(mistake, []).append(name)
    return [
        replace(one, message=f"{one.message} Study {', '.join(names)} inherits it.")
        if one.path[0] == "studies" and one.path[1] not in names
        else one
        for one, names in found.items()
    ]


def _study(params: Params, name: str, source: YamlSource) -> list[Mistake]:
    """What is wrong with a study as a whole: undefined names, values that clash."""
    study = params.studies[name]
    place = ("studies", name)
    mistakes: list[Mistake] = []
    for key, kind, allowed in (
        ("models", "model", params.models),
        ("methods", "variant", params.variants),
        ("resources", "model", params.models),
        ("variants", "variant", params.variants),
        ("grid", "variant", params.variants),
        ("outputs", "table, figure or ledger", OUTPUTS),
    ):
        mistakes += _names(kind, getattr(study, key) or {}, allowed, (*place, key), source)
    for variant, entry in study.own_entries.items():
        by_model = (*place, "variants", variant, "training_by_model")
        models = entry.training_by_model or {}
        mistakes += _names("model", models, params.models, by_model, source)
    mistakes += _unknown_axes(study, place, source)
    if mistakes:
        return mistakes
    return [source.mistake(key, text) for key, text in clashes(resolve_study(params, name))]


def _of_families(params: Params, source: YamlSource) -> list[Mistake]:
    """What is wrong with each family: undefined names, studies that its outputs cannot show."""
    mistakes = []
    for name, family in params.families.items():
        place = ("studies", name)
        mistakes += _names("study", family.of, params.studies, (*place, "of"), source)
        wanted = "output of a family"
        mistakes += _names(wanted, family.outputs, family_specs(), (*place, "outputs"), source)
    if mistakes:
        return mistakes
    for name in params.families:
        family = resolve_family(params, name)
        for index, output in enumerate(family.outputs):
            for missing in family_unmet_needs(family, family_specs()[output]):
                place = ("studies", name, "outputs", index)
                mistakes.append(source.mistake(place, f"{output} {missing}."))
    return mistakes


def _unknown_axes(
    study: StudyParamsSchema, place: KeyPath, source: YamlSource
) -> Iterator[Mistake]:
    """Axes of the study's grids that are no keys of its training."""
    training = (*place, "training")
    objective = given_schema_values(study.training).get("objective", {})
    known = _keys_of_training(objective.get("name"))
    for variant, axes in grids_of_variants(study.grid):
        for axis in axes:
            key = tuple(axis.split("."))
            if key not in known:
                meant = _meant((*training, *key), source.values, training)
                message = f"{axis} is no key of training. {meant}".rstrip()
                yield source.mistake((*place, "grid", variant, axis), message)


@cache
def _keys_of_training(objective: str | None) -> frozenset[KeyPath]:
    """Every key of a study's training section whose objective has a name, or none and all keys."""
    training = ("studies", "", "training")
    values = {"studies": {"": {"training": {"objective": {"name": objective}}}}}
    return frozenset(key[len(training) :] for key in _keys_below(training, values))


def _names(
    kind: str, names: Iterable[str], allowed: Iterable[str], path: KeyPath, source: YamlSource
) -> list[Mistake]:
    """A mistake for each name, of a list or of a mapping's keys, that is not defined."""
    defined = list(allowed)
    mistakes = []
    for index, name in enumerate(names):
        if name in defined:
            continue
        last = name if isinstance(names, Mapping) else index
        place = (*path, last) if path else (kind,)
        message = f"{name} is no {kind}. {alternatives_in_error(name, defined)}"
        mistakes.append(source.mistake(place, message))
    return mistakes


def _checked(source: YamlSource) -> tuple[Params | None, list[Mistake]]:
    """The file's values by the schema (None where a key is wrong), and all mistakes."""
    try:
        # JSON in strict mode: lists are tuples, but text is never a number nor a number a switch.
        return Params.model_validate_json(json.dumps(source.values)), []
    except ValidationError as error:
        # One sentence for each key: unions complain once for each member.
        found = [details for details in error.errors() if not _follows(details)]
        mistakes = {m.path: m for m in (_mistake(details, source) for details in found)}
        return None, list(mistakes.values())


def _follows(details: ErrorDetails) -> bool:
    """Whether a list is too short only since pydantic leaves out elements, named as mistakes."""
    is_short = details["type"] == "too_short" and details["ctx"]["actual_length"] == 0
    return is_short and bool(details["input"])


def _mistake(details: ErrorDetails, source: YamlSource) -> Mistake:
    path = _path_in_file(details, source.values)
    kind = details["type"]
    if kind == "union_tag_not_found":
        path = (*path, "name")
        kind = "missing"
    described = key_schema(path, source.values)
    meaning = " ".join(str(described.get("description", "")).split())
    if meaning:
        meaning = f"It means: {meaning}"
    given = json.dumps(details["input"], ensure_ascii=False, default=str)
    if len(given) > 60:
        given = given[:57] + "..."
    match kind:
        case "extra_forbidden":
            keys = sorted(key_schema(path[:-1], source.values).get("properties", {}))
            meant = _meant(path, source.values) or registered_name_hint(path[-1], keys)
            message = f"there is no such key. {meant}Allowed: {', '.join(keys)}."
        case "missing":
            message = f"the key is missing. {meaning}"
        case "union_tag_invalid":
            path = (*path, "name")
            tag = details["ctx"]["tag"]
            names = sorted(name.strip("'") for name in details["ctx"]["expected_tags"].split(", "))
            message = f"{json.dumps(tag)} is not allowed. {alternatives_in_error(tag, names)}"
        case "literal_error":
            names = [str(value) for value in described.get("enum", [described.get("const")])]
            allowed = alternatives_in_error(details["input"], names)
            message = f"{given} is not allowed. {allowed} {meaning}"
        case _:
            reason = details["msg"].removeprefix("Value error, ")
            reason = reason[:1].lower() + reason[1:]
            message = f"{given} is not allowed: {reason}. {meaning}"
    inherited = kind != "missing" or path[-1] not in NOT_INHERITED
    return source.mistake(path, message.strip(), inherited)


def _meant(path: KeyPath, values: Any, section: KeyPath = ()) -> str:
    """`Did you mean KEY? ` of keys that a word of other programs means: nearby, below or above.

    Keys are named from the section that the word stands in, or from the file.
    """
    section = section or path[:-1]
    word = path[-1]
    words = keys_of_alias(word)
    for root in (path[:length] for length in range(len(path) - 1, 0, -1)):
        if root[0] != "protocol" and len(root) < 2:
            break
        below = [key for key in _keys_below(root, values) if key[-1] in words]
        if not below:
            continue
        found = sorted(below, key=lambda key: (len(key), words.index(key[-1])))
        short = len(section) if len(root) >= len(section) else 0
        names = [".".join(map(str, key[short:])) for key in found]
        question = f"Did you mean {' or '.join(names)}? "
        key = found[0][-1]
        if key != word and key in NOTES:
            return f"{question}It counts otherwise: {NOTES[key]}. "
        return question
    return ""


def _keys_below(path: KeyPath, values: Any) -> Iterator[KeyPath]:
    """Every key of a section and of the sections in it; of an objective those of any name."""
    piece = key_schema(path, values)
    if "discriminator" in piece:
        yield from ((*path, one.name) for keys in HYPERPARAMETERS.values() for one in keys)
    for key in piece.get("properties", {}):
        yield (*path, key)
        if key != "pretraining":  # the miniature's, which nobody means
            yield from _keys_below((*path, key), values)


def _path_in_file(details: ErrorDetails, values: Any) -> KeyPath:
    """The part of pydantic's location that is in the file (it adds names of union members)."""
    path: KeyPath = ()
    for key in details["loc"]:
        if isinstance(values, list | dict):
            try:
                values = values[key]  # type: ignore[call-overload,index]
                path = (*path, key)
            except (KeyError, IndexError, TypeError):
                if details["type"] == "missing" and key == details["loc"][-1]:
                    path = (*path, key)
    return path
