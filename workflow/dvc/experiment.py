"""Run a study with some settings changed, and keep that as an experiment of DVC (`make exp`).

    python workflow/dvc/experiment.py --study quick --name short --set "training.steps=50 seeds=[0]"

The values are changed in the text of params.yaml, for as long as the run takes; then all files are
as before. `dvc exp run --set-param` would write the whole file anew, without its layout.
"""

import argparse
import shlex
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml
from generate import Pipeline, pipelines
from ruamel.yaml import YAML

from geosd.files import write_text

PARAMS = Path("params.yaml")


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
        inner[key] = YAML(typ="safe", pure=True).load(value)  # 1e-6 is a number
    return found


def edited(text: str, study: str, changes: Mapping[str, Any]) -> str:
    """The text of params.yaml with values of a study changed, or added; all else is as it was.

    Raises:
        SystemExit: The file has no such study.
    """
    studies = _items(_items(yaml.compose(text))["studies"][1])
    if study not in studies:
        raise SystemExit(f"No study {study!r}.\nHint: params.yaml has {', '.join(studies)}.")
    for begin, end, new in sorted(_changes(studies[study][1], changes), reverse=True):
        text = text[:begin] + new + text[end:]
    return text


def _changes(node: yaml.MappingNode, changes: Mapping[str, Any]) -> Iterator[tuple[int, int, str]]:
    """What to put between which two places of the text, for the changes of one mapping."""
    first, there = node.value[0][0].start_mark, _items(node)
    after = ", " if node.flow_style else "\n" + " " * first.column
    for name, change in changes.items():
        key, value = there.get(name, (None, None))
        written = yaml.safe_dump(change, default_flow_style=True, width=10**6, sort_keys=False)
        written = written.strip().removesuffix("...").strip()
        if value is None:
            yield first.index, first.index, f"{name}: {written}{after}"
        elif value.start_mark.index < key.start_mark.index:
            raise SystemExit(
                f"{name} is an alias of params.yaml.\nHint: write the values there, in its place."
            )
        elif isinstance(value, yaml.MappingNode) and isinstance(change, Mapping) and value.value:
            yield from _changes(value, change)
        else:
            yield value.start_mark.index, _end(value), written


def _items(node: yaml.MappingNode) -> dict[str, tuple[yaml.Node, yaml.Node]]:
    """The keys and values of a mapping."""
    return {key.value: (key, value) for key, value in node.value}


def _end(node: yaml.Node) -> int:
    """Where a value ends: that of a block, before the blanks and comments that follow it."""
    if isinstance(node, yaml.CollectionNode) and not node.flow_style and node.value:
        last = node.value[-1]
        return _end(last[1] if isinstance(last, tuple) else last)
    return node.end_mark.index


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
    own = [Pipeline.of(each) for each in (*pipelines(study, check=False), study)]
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
