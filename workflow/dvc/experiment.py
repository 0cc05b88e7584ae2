"""Run a study with some settings changed, and keep that as an experiment of DVC (`make exp`).

    python workflow/dvc/experiment.py --study quick --name short --set "training.steps=50 seeds=[0]"

The values are changed in the text of params.yaml, for as long as the run takes; then all files are
as before. `dvc exp run --set-param` would write the whole file anew, without its layout.
"""

import argparse
import io
import shlex
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from generate import Pipeline
from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedMap

from geosd.files import write_text

PARAMS = Path("params.yaml")
NULL = "tag:yaml.org,2002:null"


def parsed(words: str) -> dict[str, Any]:
    """The settings of `training.steps=50 seeds=[0]` as nested mappings.

    Raises:
        SystemExit: A word is no path and value.
    """
    found: dict[str, Any] = {}
    for word in shlex.split(words):
        path, equals, value = word.partition("=")
        *sections, key = path.split(".")
        if not (equals and key):
            raise SystemExit(f'{word!r} is no setting.\nHint: as in SET="training.steps=50".')
        inner = found
        for section in sections:
            inner = inner.setdefault(section, {})
        inner[key] = YAML().load(value)  # 1e-6 is a number
    return found


def edited(text: str, study: str, changes: Mapping[str, Any]) -> str:
    """The text of params.yaml with values of a study changed, or added; all else is as it was.

    Raises:
        SystemExit: The file has no such study.
    """
    yaml, written = YAML(), io.StringIO()
    yaml.width, yaml.preserve_quotes = 10**6, True
    yaml.indent(mapping=2, sequence=4, offset=2)
    yaml.representer.add_representer(type(None), lambda to, _: to.represent_scalar(NULL, "null"))
    params = yaml.load(text)
    if study not in params["studies"]:
        names = ", ".join(params["studies"])
        raise SystemExit(f"No study {study!r}.\nHint: params.yaml has {names}.")
    merge(params["studies"][study], changes)
    yaml.dump(params, written)
    return written.getvalue()


def merge(values: CommentedMap, changes: Mapping[str, Any]) -> None:
    """Change values of a mapping; a key that is new goes first, before comments on what follows.

    Raises:
        SystemExit: A mapping has an anchor: other settings would change with it.
    """
    for name, change in changes.items():
        value = values.get(name)
        if isinstance(change, Mapping) and isinstance(value, CommentedMap):
            if anchor := value.anchor.value:
                raise SystemExit(
                    f"{name} is shared in params.yaml, as *{anchor}.\nHint: write the values there,"
                    " in its place."
                )
            merge(value, change)
        elif name in values:
            values[name] = change
        else:
            values.insert(0, name, change)


def call(*command: str) -> None:
    """Run a program, and end with its status where it fails."""
    if status := subprocess.run([sys.executable, *command]).returncode:
        raise SystemExit(status)


def main(study: str, name: str, changes: str) -> None:
    """Change the study, run it, keep the experiment, and leave each file as it was.

    Raises:
        SystemExit: A setting is none, or a program failed, whose words stand above.
    """
    text = edited(PARAMS.read_text(encoding="utf-8"), study, parsed(changes))
    own = map(Pipeline.of, YAML(typ="safe", pure=True).load(text)["studies"])
    files = {PARAMS, *(file for each in own for file in (each.file, each.settings, each.lock))}
    before = {file: file.read_bytes() if file.exists() else None for file in files}
    try:
        write_text(PARAMS, text)
        call("workflow/dvc/generate.py", "--study", study)
        call("-m", "geosd", "run", "--study", study)
        call("-m", "geosd", "dvc-commit", "--study", study)
        at = Pipeline.of(study)
        untracked = ["git", "ls-files", "--others", "--", at.file, at.settings, at.lock]
        new = subprocess.run(untracked, capture_output=True, text=True, check=True).stdout.split()
        added = [word for file in new for word in ("-I", file)]
        call("-m", "dvc", "exp", "save", "--force", "--name", name, *added, str(at.file))
    finally:
        for file, content in before.items():
            file.unlink(missing_ok=True) if content is None else file.write_bytes(content)
    print(f"\nThe experiment is {name}: `dvc exp show`, `dvc exp apply {name}`.")
    print(f"params.yaml is as before; `make run STUDY={study}` shows study {study} itself again.")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--study", default="quick")
    parser.add_argument("--name", required=True, help="what the experiment is called")
    parser.add_argument("--set", required=True, dest="changes", help="training.steps=50 seeds=[0]")
    main(**vars(parser.parse_args()))
