"""Look at params.yaml from the command line: `python -m geosd.config --help` lists how."""

import json
import re
import sys
from pathlib import Path

import tyro
import yaml

from geosd.config import ConfigError, load, resolve_study
from geosd.config.json_schema import json_schema
from geosd.config.loading import SCHEMA
from geosd.config.output_needs import output_needs_rows
from geosd.config.rule_settings import configuration_rule_settings
from geosd.files import write_text

PAGE = Path("docs/configuration.md")
"""The page that lists tables and figures, between two marks."""


def check(params: Path = Path("params.yaml")) -> None:
    """Say whether the file is right."""
    print(f"{params} is right: studies {', '.join(load(params).entries)}.")


def show(
    study: str | None = None, params: Path = Path("params.yaml"), out: Path | None = None
) -> None:
    """Print a study as it is run, as YAML, or write it; default: the one that params.yaml names."""
    shown = configuration_rule_settings(resolve_study(load(params), study))
    text = yaml.safe_dump(shown, sort_keys=False, allow_unicode=True)
    write_text(out, text) if out else print(text, end="")


def schema() -> None:
    """Write the JSON schema that editors read."""
    write_text(SCHEMA, json.dumps(json_schema(), indent=2, ensure_ascii=False) + "\n")


def outputs() -> None:
    """Write the list of tables and figures into docs/configuration.md."""
    text, marks = PAGE.read_text("utf-8"), r"(?s)(?<=<!-- outputs -->\n).*(?=<!-- end -->)"
    write_text(PAGE, re.sub(marks, lambda _: f"\n{output_needs_rows()}\n", text))


if __name__ == "__main__":
    programs = {program.__name__: program for program in (check, show, schema, outputs)}
    try:
        tyro.extras.subcommand_cli_from_dict(programs, prog="python -m geosd.config")
    except ConfigError as error:
        sys.exit(str(error))
