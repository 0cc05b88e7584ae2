"""Look at params.yaml from the command line.

python -m geosd.config check                 is the file right?
python -m geosd.config show [--study NAME]   the study as it is run, as YAML
python -m geosd.config schema                write the JSON schema that editors read
python -m geosd.config outputs               write the list of tables and figures into its page
"""

import argparse
import json
import re
import sys
from pathlib import Path

import yaml

from geosd.config import ConfigError, load, resolve
from geosd.config.loading import SCHEMA, json_schema
from geosd.config.output_needs import catalogue
from geosd.config.rule_settings import configuration
from geosd.files import write_text

PAGE = Path("docs/configuration.md")
"""The page that lists tables and figures, between two marks."""


def main(words: list[str] | None = None) -> int:
    """Check params.yaml, show a study of it, or write its schema; 1 where it is wrong."""
    parser = argparse.ArgumentParser(
        prog="python -m geosd.config",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("command", choices=["check", "show", "schema", "outputs"])
    parser.add_argument("--params", type=Path, default=Path("params.yaml"))
    parser.add_argument("--study", help="default: the study that params.yaml names")
    parser.add_argument("--out", type=Path, help="file to write (schema: " + SCHEMA + ")")
    arguments = parser.parse_args(words)
    if arguments.command == "schema":
        text = json.dumps(json_schema(), indent=2, ensure_ascii=False) + "\n"
        write_text(arguments.out or SCHEMA, text)
        return 0
    if arguments.command == "outputs":
        text, marks = (
            PAGE.read_text(encoding="utf-8"),
            r"(?s)(?<=<!-- outputs -->\n).*(?=<!-- end -->)",
        )
        write_text(PAGE, re.sub(marks, lambda _: f"\n{catalogue()}\n", text))
        return 0
    try:
        params = load(arguments.params)
        study = resolve(params, arguments.study)
    except ConfigError as error:
        print(error, file=sys.stderr)
        return 1
    if arguments.command == "check":
        print(f"{arguments.params} is right: studies {', '.join(params.studies)}.")
        return 0
    text = yaml.safe_dump(configuration(study), sort_keys=False, allow_unicode=True)
    if arguments.out:
        write_text(arguments.out, text)
    else:
        print(text, end="")
    return 0


if __name__ == "__main__":
    sys.exit(main())
