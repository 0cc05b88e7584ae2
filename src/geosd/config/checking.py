"""Turn what pydantic finds into sentences: which key, what is allowed, what was meant."""

from __future__ import annotations

import difflib
import json
from functools import cache
from typing import Any

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from geosd.config.overlays import Params
from geosd.config.reading import Key, KeyPath, Mistake, Source

SCHEMA = "workflow/schemas/params.schema.json"


@cache
def schema() -> dict[str, Any]:
    """The JSON schema of params.yaml, for editors, generated from the classes."""
    made = Params.model_json_schema()
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **made}


def validate(source: Source) -> tuple[Params | None, list[Mistake]]:
    """Check a file's values key by key.

    Returns:
        The parameters (None where a key is wrong) and all mistakes.
    """
    try:
        # JSON in strict mode: lists are tuples, but text is never a number nor a number a switch.
        return Params.model_validate_json(json.dumps(source.values, default=str)), []
    except ValidationError as error:
        found = [_mistake(details, source) for details in error.errors()]
        said = {mistake.path for mistake in source.mistakes}
        # One sentence for each key: unions complain once for each member, and what two YAML
        # readers disagree on has been reported already.
        return None, list({m.path: m for m in found if m.path not in said}.values())


def close_to(name: object, allowed: list[str]) -> str:
    """The question 'Did you mean ...? ' where one of the allowed names is close, or nothing."""
    close = difflib.get_close_matches(str(name), allowed, n=1, cutoff=0.6)
    return f"Did you mean {close[0]}? " if close else ""


def _mistake(details: ErrorDetails, source: Source) -> Mistake:
    path = _in_file(details["loc"], source.values)
    given = json.dumps(details["input"], ensure_ascii=False, default=str)
    given = given if len(given) <= 60 else given[:57] + "..."
    match details["type"]:
        case "extra_forbidden":
            keys = sorted(_at(path[:-1]).get("properties", {}))
            message = f"there is no such key. {close_to(path[-1], keys)}Allowed: {', '.join(keys)}."
        case "missing":
            message = f"the key is missing. {_meaning(path)}"
        case "literal_error":
            allowed = [str(value) for value in _at(path).get("enum", [])]
            message = f"{given} is not allowed. {close_to(details['input'], allowed)}"
            message += f"Allowed: {', '.join(allowed)}. {_meaning(path)}"
        case _:
            reason = details["msg"][:1].lower() + details["msg"][1:]
            message = f"{given} is not allowed: {reason}. {_meaning(path)}"
    return Mistake(path, source.line(path), message.strip())


def _in_file(loc: tuple[Key, ...], values: Any) -> KeyPath:
    """The part of pydantic's location that is in the file (it adds names of union members)."""
    path: list[Key] = []
    for position, key in enumerate(loc):
        inside = isinstance(values, list | dict)
        if not inside or key == "[key]":
            break
        path.append(key)
        try:
            values = values[key]
        except (KeyError, IndexError, TypeError):
            if position < len(loc) - 1 or isinstance(values, list):
                path.pop()
            break
    return tuple(path)


def _at(path: KeyPath) -> dict[str, Any]:
    """The piece of the JSON schema that describes a key, through references and 'or null'."""
    piece: dict[str, Any] = schema()
    for key in path:
        piece = _followed(piece)
        if isinstance(key, int):
            piece = piece.get("items", {})
        else:
            patterns = list(piece.get("patternProperties", {}).values())
            rest = patterns[0] if patterns else piece.get("additionalProperties", {})
            piece = piece.get("properties", {}).get(key, rest)
        if not isinstance(piece, dict):
            return {}
    return _followed(piece)


def _followed(piece: dict[str, Any]) -> dict[str, Any]:
    for option in piece.get("anyOf", []):
        if option.get("type") != "null":
            return {**_followed(option), **{k: v for k, v in piece.items() if k == "description"}}
    if "$ref" in piece:
        target = schema()["$defs"][piece["$ref"].rsplit("/", 1)[-1]]
        return {**target, **{k: v for k, v in piece.items() if k == "description"}}
    return piece


def _meaning(path: KeyPath) -> str:
    """The first sentence of the key's documentation."""
    text = " ".join(str(_at(path).get("description", "")).split())
    return f"It means: {text}" if text else ""
