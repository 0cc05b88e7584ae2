"""The JSON schema of params.yaml, for editors and for the hints of errors."""

from functools import cache
from typing import Any

from geosd.config.errors import KeyPath
from geosd.config.overlays import NOT_INHERITED
from geosd.config.params_schema import (
    FamilyParamsSchema,
    Params,
    StudyParamsSchema,
    is_family_overlay,
)


@cache
def json_schema() -> dict[str, Any]:
    """The JSON schema of params.yaml, for editors, generated from the schema's classes."""
    made = Params.model_json_schema()
    for name, definition in made["$defs"].items():
        if name.startswith("Objective_"):  # a study's variant may leave out whose keys they are
            definition.pop("required")
        objective = definition["properties"].get("objective", {})
        if "oneOf" in objective:
            objective["anyOf"] = objective.pop("oneOf")
        if "extends" in definition["properties"] and "required" in definition:
            # An entry that extends another needs only the keys that are never inherited.
            needed = definition.pop("required")
            definition["required"] = [key for key in needed if key in NOT_INHERITED]
            definition["anyOf"] = [{"required": ["extends"]}, {"required": needed}]
    made["description"] = (
        "Generated from src/geosd/config by `make schema`; do not edit. It serves editors: people"
        " read docs/configuration.md."
    )
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **made}


def key_schema(path: KeyPath, values: Any) -> dict[str, Any]:
    """The part of the JSON schema for a key, without references; values choose among unions."""
    piece = _followed(json_schema(), values)
    for key in path:
        values = values[key] if isinstance(values, dict) and key in values else None
        if isinstance(key, int):
            piece = piece.get("items", {})
        else:
            patterns = list(piece.get("patternProperties", {}).values())
            rest = patterns[0] if patterns else piece.get("additionalProperties", {})
            piece = piece.get("properties", {}).get(key, rest)
        if not isinstance(piece, dict):
            return {}
        piece = _followed(piece, values)
    return piece


def _followed(piece: dict[str, Any], values: Any) -> dict[str, Any]:
    """A piece of the schema without references, 'or null', and members of other names."""
    described = {key: value for key, value in piece.items() if key == "description"}
    if "discriminator" in piece:
        name = values.get("name") if isinstance(values, dict) else None
        # What stands in the name's place may be a list or a mapping, which no key of a dict is.
        reference = piece["discriminator"]["mapping"].get(name) if isinstance(name, str) else None
        return {**_followed({"$ref": reference}, values), **described} if reference else piece
    if "oneOf" in piece:  # an entry of `studies`
        chosen = FamilyParamsSchema if is_family_overlay(values) else StudyParamsSchema
        return {**_followed({"$ref": chosen.__name__}, values), **described}
    options = [one for one in piece.get("anyOf", []) if "required" not in one]
    for option in options:
        if option.get("type") != "null":
            return {**_followed(option, values), **described}
    if "$ref" in piece:
        target = json_schema()["$defs"][piece["$ref"].rsplit("/", 1)[-1]]
        return {**_followed(target, values), **described}
    return piece
