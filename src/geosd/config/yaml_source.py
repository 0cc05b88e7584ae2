"""Read params.yaml so that every reader of the file sees the same values, and know each key's line.

Snakemake and all programs read the file by this module, by YAML 1.1; DVC and editors by YAML 1.2. A
value on which the two versions disagree (1e-6 is text to 1.1 and a number to 1.2) is a mistake.

A file is refused before its values are made where it nests too deep or has too many values: a few
aliases of aliases are billions of values, and an alias inside its own anchor has no end.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

import yaml
from ruamel.yaml import YAML
from ruamel.yaml.nodes import ScalarNode

from geosd.config.errors import ConfigError, KeyPath, Mistake, config_error

# Every program of the workflow reads the file when it starts; libyaml does so ten times faster.
LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
# DVC's reader is written in Python, so it is asked only what it takes an unquoted value for.
YAML_1_2 = YAML(pure=True).resolver
DEEPEST = 20
"""Levels of nesting; params.yaml has eight."""
MOST_VALUES = 100_000
"""Keys and list entries, those of an alias each time; params.yaml has two thousand."""
KINDS = {
    "str": "text",
    "float": "a number",
    "int": "a number",
    "bool": "true/false",
    "null": "null",
    "map": "a mapping",
    "seq": "a list",
}
"""Tags of YAML that a configuration may have, and what errors call them."""


@dataclass(frozen=True)
class Source:
    """A YAML file that has been read: its plain values, and the line of each key from 1."""

    file: Path
    values: Any
    lines: dict[KeyPath, int]
    parents: dict[tuple[str, ...], str] = field(default_factory=dict)
    """Section and entry -> the entry of that section that it extends."""

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
    """Read a YAML file with the line of each key.

    Raises:
        ConfigError: The file is absent, is not UTF-8 or not YAML, is too large, or has a repeated
            key or a value that two YAML readers take differently.
    """
    file = Path(file)
    try:
        text = file.read_text(encoding="utf-8")
    except FileNotFoundError as error:
        raise ConfigError(
            f"{file} does not exist.\nHint: run from the root of the repository, or name the file"
            " with --params."
        ) from error
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(
            f"{file} cannot be read: {error}.\nHint: it is a text file in UTF-8."
        ) from error
    lines: dict[KeyPath, int] = {}
    mistakes: list[Mistake] = []
    try:
        _check_depth(text)
        loader = LOADER(text)
        root = loader.get_single_node()
        for number, (path, line, message) in enumerate(_walk(text, root, ())):
            lines.setdefault(path, line)
            if message:
                mistakes.append(Mistake(path, line, message))
            if number > MOST_VALUES:
                message = f"there are more than {MOST_VALUES} values by here; aliases count too."
                raise config_error(file, [Mistake(path, line, message)])
        if mistakes:
            raise config_error(file, mistakes)
        return Source(file, None if root is None else loader.construct_document(root), lines)
    except ConfigError:
        raise
    # The last two: a value that is not what its tag says, as `!!int many`.
    except (yaml.YAMLError, ValueError, LookupError) as error:
        raise ConfigError(
            f"{file} is not YAML: {error}\nHint: look for a missing colon, a tab, a tag such as"
            " !!int, or uneven indentation at or just above that line."
        ) from error


def _check_depth(text: str) -> None:
    """Refuse a document that nests too deep, before libyaml, which is recursive, builds it."""
    depth = 0
    for event in yaml.parse(text, Loader=LOADER):
        depth += isinstance(event, yaml.CollectionStartEvent)
        depth -= isinstance(event, yaml.CollectionEndEvent)
        if depth > DEEPEST:
            raise yaml.YAMLError(f"more than {DEEPEST} levels of nesting\n{event.start_mark}")


def _walk(text: str, node: yaml.Node | None, path: KeyPath) -> Iterator[tuple[KeyPath, int, str]]:
    """Every key of a document with its line and, where there is one, its mistake."""
    if node is None:
        return
    line = node.start_mark.line + 1
    if len(path) > DEEPEST:
        yield path[:3], line, f"below are more than {DEEPEST} levels; an alias holds itself."
    elif _kind(node.tag) not in KINDS.values():
        yield path, line, f"YAML takes it for {_kind(node.tag)}; put it in quotes, without a tag."
    elif isinstance(node, yaml.MappingNode):
        seen: dict[str, int] = {}
        for key, value in node.value:
            name = key.value if isinstance(key, yaml.ScalarNode) else "?"
            here, line = (*path, name), key.start_mark.line + 1
            first = seen.setdefault(name, line)
            yield here, line, _key_mistake(text, key, first)
            yield from _walk(text, value, here)
    elif isinstance(node, yaml.SequenceNode):
        for index, value in enumerate(node.value):
            yield (*path, index), value.start_mark.line + 1, ""
            yield from _walk(text, value, (*path, index))
    elif message := _disagreement(text, node):
        yield path, line, message


def _key_mistake(text: str, key: yaml.Node, first: int) -> str:
    """What is wrong with a key that stands on line `first` too; empty where nothing is."""
    if first != key.start_mark.line + 1:
        return f"the key stands here and on line {first}; keep one of them."
    if _kind(key.tag) not in ("text", "merge"):
        return f"a key is text, and YAML takes this one for {_kind(key.tag)}; put it in quotes."
    return _disagreement(text, key)


def _disagreement(text: str, node: yaml.Node) -> str:
    """What two YAML readers take a scalar for, where they disagree; otherwise empty."""
    if node.tag.endswith(":int"):
        if re.fullmatch(r"[-+]?0[0-9_]+", node.value):
            return f"{node.value} is octal to YAML 1.1 but decimal to YAML 1.2; write no leading 0."
        if len(node.value) > 30:
            return f"a number of {len(node.value)} digits is larger than anything here."
    # In quotes a value is text to both, and with a tag, `!!str 1e-6`, it is to both what that says.
    if node.style or text.startswith("!", node.start_mark.index):
        return ""
    old, new = node.tag, _tag_of_1_2(node.value)
    return "" if old == new else _ambiguous(node.value, _kind(old), _kind(new))


@lru_cache(maxsize=4096)
def _tag_of_1_2(value: str) -> str:
    """What YAML 1.2 takes an unquoted value for; a file has most keys and values many times."""
    return str(YAML_1_2.resolve(ScalarNode, value, (True, False)))


def _kind(tag: str) -> str:
    name = tag.rsplit(":", 1)[-1]
    return KINDS.get(name, name)


def _ambiguous(value: str, old: str, new: str) -> str:
    message = f"{value} is {old} to Snakemake (YAML 1.1) but {new} to DVC (YAML 1.2); "
    if new != "a number":
        return message + "put it in quotes, or write true or false."
    if not re.fullmatch(r"[-+.\d]+[eE][-+\d]+", value):
        return message + "write it in decimal, without a leading 0."
    mantissa, _, exponent = value.lower().partition("e")
    mantissa += "" if "." in mantissa else ".0"
    exponent = exponent if exponent[:1] in "+-" else f"+{exponent}"
    return message + f"write {mantissa}e{exponent}, with a point and a sign."
