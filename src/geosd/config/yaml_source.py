"""Read params.yaml so that every reader of the file sees the same values, and know each key's line.

Three programs read the file: Snakemake by YAML 1.1, DVC by YAML 1.2, and this package. A value on
which the two versions disagree (1e-6 is text to 1.1 and a number to 1.2) is reported as a mistake.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml
from ruamel.yaml import YAML
from ruamel.yaml.nodes import ScalarNode

from geosd.config.errors import ConfigError, KeyPath, Mistake

# Every program of the workflow reads the file when it starts; libyaml does so ten times faster.
LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
# DVC's reader is written in Python, so it is asked only what it takes an unquoted value for.
YAML_1_2 = YAML(pure=True).resolver


@dataclass(frozen=True)
class Source:
    """A YAML file that has been read: its values, the line of each key, mistakes.

    Attributes:
        file: Where it is.
        values: Its content as plain values.
        lines: The line of each key path, counted from 1.
        mistakes: Repeated keys and values that two YAML readers take differently.
        parents: Section and entry -> the entry of that section that it extends.
    """

    file: Path
    values: Any
    lines: dict[KeyPath, int]
    mistakes: list[Mistake]
    parents: dict[tuple[str, ...], str] = field(default_factory=dict)

    def mistake(self, path: KeyPath, message: str, inherited: bool = True) -> Mistake:
        """A mistake at a key of the YAML file, with its line; of an inherited key the parent's.

        `inherited` is False for what an entry must say itself.
        """
        chain = [path]
        while inherited and (parent := self.parents.get(tuple(map(str, chain[-1][:2])))):
            chain.append((path[0], parent, *path[2:]))
        for length in range(len(path), 0, -1):
            for key in chain:
                if key[:length] in self.lines:
                    return Mistake(key, self.lines[key[:length]], message)
        return Mistake(path, 1, message)


def read(file: Path | str) -> Source:
    """Read a YAML file with the line of each key and the values that readers disagree on.

    Raises:
        ConfigError: The file is absent, or is not YAML.
    """
    file = Path(file)
    try:
        text = file.read_text(encoding="utf-8")
    except FileNotFoundError as error:
        raise ConfigError(
            f"{file} does not exist.\nHint: run from the root of the repository, or name the file"
            " with --params."
        ) from error
    try:
        root = yaml.compose(text, Loader=LOADER)
        values = yaml.load(text, Loader=LOADER)
    except yaml.YAMLError as error:
        raise ConfigError(
            f"{file} is not YAML: {error}\nHint: look for a missing colon, a tab, or uneven"
            " indentation at or just above that line."
        ) from error
    lines: dict[KeyPath, int] = {}
    mistakes: list[Mistake] = []
    for path, line, message in _walk(text, root, ()):
        lines.setdefault(path, line)
        if message:
            mistakes.append(Mistake(path, line, message))
    return Source(file, values, lines, mistakes)


def _walk(text: str, node: yaml.Node | None, path: KeyPath) -> Iterator[tuple[KeyPath, int, str]]:
    """Every key of a document with its line and, where there is one, its mistake."""
    if isinstance(node, yaml.MappingNode):
        seen: dict[str, int] = {}
        for key, value in node.value:
            here = (*path, key.value)
            line = key.start_mark.line + 1
            first = seen.setdefault(key.value, line)
            twice = f"the key stands here and on line {first}; keep one of them."
            yield here, line, twice if first != line else ""
            yield from _walk(text, value, here)
    elif isinstance(node, yaml.SequenceNode):
        for index, value in enumerate(node.value):
            yield (*path, index), value.start_mark.line + 1, ""
            yield from _walk(text, value, (*path, index))
    # In quotes a value is text to both, and with a tag, `!!str 1e-6`, it is to both what that says.
    elif node is not None and not node.style and not text.startswith("!", node.start_mark.index):
        old, new = node.tag, str(YAML_1_2.resolve(ScalarNode, node.value, (True, False)))
        if old != new:
            yield path, node.start_mark.line + 1, _ambiguous(node.value, _kind(old), _kind(new))


def _kind(tag: str) -> str:
    names = {"str": "text", "float": "a number", "int": "a number", "bool": "true/false"}
    name = tag.rsplit(":", 1)[-1]
    return names.get(name, name)


def _ambiguous(value: str, old: str, new: str) -> str:
    message = f"{value} is {old} to Snakemake (YAML 1.1) but {new} to DVC (YAML 1.2); "
    if new != "a number":
        return message + "put it in quotes, or write true or false."
    mantissa, _, exponent = value.lower().partition("e")
    mantissa += "" if "." in mantissa else ".0"
    exponent = exponent if exponent[:1] in "+-" else f"+{exponent}"
    return message + f"write {mantissa}e{exponent}, with a point and a sign."
