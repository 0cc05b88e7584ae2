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
from pathlib import Path

from generate import Pipeline
from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedMap

from geosd.cli.publish import all_folders, commit, hide_lock
from geosd.files import write_text

PARAMS = Path("params.yaml")
NULL = "tag:yaml.org,2002:null"


def edited(text: str, study: str, changes: str) -> str:
    """The text of params.yaml with values of a study changed, or added; all else is as it was.

    `changes` are words as in `training.steps=50 seeds=[0]`. A key that is new goes first, before
    comments on what follows.

    Raises:
        SystemExit: The file has no such study, a word is no path and value, or a mapping has an
            anchor: other settings would change with it.
    """
    yaml, written = YAML(), io.StringIO()
    yaml.width, yaml.preserve_quotes = 10**6, True
    yaml.indent(mapping=2, sequence=4, offset=2)
    yaml.representer.add_representer(type(None), lambda to, _: to.represent_scalar(NULL, "null"))
    params = yaml.load(text)
    if study not in params["studies"]:
        names = ", ".join(params["studies"])
        raise SystemExit(f"No study {study!r}.\nHint: params.yaml has {names}.")
    for word in shlex.split(changes):
        path, equals, value = word.partition("=")
        *sections, key = path.split(".")
        if not (equals and key):
            raise SystemExit(f'{word!r} is no setting.\nHint: as in SET="training.steps=50".')
        values = params["studies"][study]
        for section in sections:
            if not isinstance(values.get(section), CommentedMap):
                values.insert(0, section, CommentedMap())
            values = values[section]
            if anchor := values.anchor.value:
                raise SystemExit(
                    f"{section} is shared in params.yaml, as *{anchor}.\nHint: write the values"
                    " there, in its place."
                )
        if key not in values:
            values.insert(0, key, None)
        values[key] = YAML().load(value)  # 1e-6 is a number
    yaml.dump(params, written)
    return written.getvalue()


def call(*command: str) -> None:
    """Run a program, and end with its status where it fails."""
    if status := subprocess.run([sys.executable, *command]).returncode:
        raise SystemExit(status)


def main(study: str, name: str, changes: str) -> None:
    """Change the study, run it, keep the experiment, and leave each file as it was.

    Raises:
        SystemExit: A setting is none, or a program failed, whose words stand above.
    """
    text = edited(PARAMS.read_text(encoding="utf-8"), study, changes)
    own = map(Pipeline.of, YAML(typ="safe", pure=True).load(text)["studies"])
    files = {PARAMS, *(file for each in own for file in (each.file, each.settings, each.lock))}
    before = {file: file.read_bytes() if file.exists() else None for file in files}
    try:
        write_text(PARAMS, text)
        call("workflow/dvc/generate.py", "--study", study)
        call("-m", "geosd", "run", "--study", study)
        at = Pipeline.of(study)
        commit([str(at.file)], all_folders(study))
        untracked = ["git", "ls-files", "--others", "--", at.file, at.settings, at.lock]
        new = subprocess.run(untracked, capture_output=True, text=True, check=True).stdout.split()
        added = [word for file in new for word in ("-I", file)]
        call("-m", "dvc", "exp", "save", "--force", "--name", name, *added, str(at.file))
    finally:
        for file, content in before.items():
            file.unlink(missing_ok=True) if content is None else file.write_bytes(content)
    hide_lock()
    print(f"\nThe experiment is {name}: `dvc exp show`, `dvc exp apply {name}`.")
    print(f"params.yaml is as before; `make run STUDY={study}` shows study {study} itself again.")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--study", default="quick")
    parser.add_argument("--name", required=True, help="what the experiment is called")
    parser.add_argument("--set", required=True, dest="changes", help="training.steps=50 seeds=[0]")
    main(**vars(parser.parse_args()))
