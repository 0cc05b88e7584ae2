"""The JSON schema that editors and people read."""

from __future__ import annotations

import json

import jsonschema
import yaml

from geosd.config.json_schema import json_schema
from geosd.config.loading import SCHEMA


def test_the_schema_file_is_the_one_the_classes_make(root):
    kept = json.loads((root / SCHEMA).read_text())
    assert kept == json_schema(), f"{SCHEMA} is out of date. Hint: make schema"


def test_the_schema_accepts_params_as_snakemake_reads_it(root):
    jsonschema.validate(yaml.safe_load((root / "params.yaml").read_text()), json_schema())


def test_params_names_its_schema_for_the_editor(root):
    first = (root / "params.yaml").read_text().splitlines()[0]
    assert first == f"# yaml-language-server: $schema={SCHEMA}"


def test_every_key_of_every_section_is_documented():
    for name, definition in json_schema()["$defs"].items():
        for key, value in definition.get("properties", {}).items():
            described = "description" in value or "$ref" in value
            assert described, f"{name}.{key} has no description"
