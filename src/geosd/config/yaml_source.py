"""Read params.yaml with the line of each key, so that errors can point at it.

Every reader takes the file by YAML 1.2: this module, with libyaml, for Snakemake and all programs,
and DVC and editors with their own. So 1e-6 is a number, and `on` and `no` are text.

A file is refused before its values are made where it nests too deep or has too many values: a few
aliases of aliases are billions of values, and an alias inside its own anchor has no end.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from geosd.config.errors import ConfigError, KeyPath, Mistake, config_error

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
UNQUOTED = {
    "null": "~|null|Null|NULL|",
    "bool": "true|True|TRUE|false|False|FALSE",
    "int": "[-+]?(?:0|[1-9][0-9]*)",
    "float": r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*|(?=[eE])))(?:[eE][-+]?[0-9]+)?"
    r"|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)",
    "merge": "<<",
}
"""Words that YAML 1.2 (core schema) takes for more than text, but octal and hexadecimal numbers."""


# Every program of the workflow reads the file when it starts; libyaml does so ten times faster.
class YamlLoader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
    """PyYAML's loader, which is of YAML 1.1, with the unquoted values of YAML 1.2."""

    yaml_implicit_resolvers = {
        None: [
            (f"tag:yaml.org,2002:{tag}", re.compile(rf"(?:{pattern})\Z"))
            for tag, pattern in UNQUOTED.items()
        ]
    }


@dataclass(frozen=True)
class YamlSource:
    """A YAML file that has been read: its plain values, and the line of each key from 1."""

    file: Path
    values: Any
    lines: dict[KeyPath, int]
    parents: dict[tuple[str, ...], str] = field(default_factory=dict)
    """Section and entry -> the entry of that section that it extends."""

    def mistake(self, path: KeyPath, message: str, inherited: bool = True) -> Mistake:
        """A mistake at a key, with its line; of an `inherited` key with the parent's."""
        chain = [path]
        while inherited and (parent := self.parents.get(tuple(map(str, chain[-1][:2])))):
            chain.append((path[0], parent, *path[2:]))
        for length in range(len(path), 0, -1):
            for key in chain:
                if key[:length] in self.lines:
                    return Mistake(key, self.lines[key[:length]], message)
        return Mistake(path, 1, message)


def read_yaml_source(file: Path | str) -> YamlSource:
    """Read a YAML file with the line of each key; a ConfigError lists what cannot be a value."""
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
        loader = YamlLoader(text)
        root = loader.get_single_node()
        for number, (path, line, message) in enumerate(_walk(root, ())):
            lines.setdefault(path, line)
            if message:
                mistakes.append(Mistake(path, line, message))
            if number > MOST_VALUES:
                message = f"there are more than {MOST_VALUES} values by here; aliases count too."
                raise config_error(file, [Mistake(path, line, message)])
        if mistakes:
            raise config_error(file, mistakes)
        return YamlSource(file, None if root is None else loader.construct_document(root), lines)
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
    for event in yaml.parse(text, Loader=YamlLoader):
        depth += isinstance(event, yaml.CollectionStartEvent)
        depth -= isinstance(event, yaml.CollectionEndEvent)
        if depth > DEEPEST:
            raise yaml.YAMLError(f"more than {DEEPEST} levels of nesting\n{event.start_mark}")


def _walk(node: yaml.Node | None, path: KeyPath) -> Iterator[tuple[KeyPath, int, str]]:
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
            yield here, line, _key_mistake(key, seen.get(name))
            seen.setdefault(name, line)
            yield from _walk(value, here)
    elif isinstance(node, yaml.SequenceNode):
        for index, value in enumerate(node.value):
            yield (*path, index), value.start_mark.line + 1, ""
            yield from _walk(value, (*path, index))
    elif node.tag.endswith(":int") and len(node.value) > 30:
        yield path, line, f"a number of {len(node.value)} digits is larger than anything here."


def _key_mistake(key: yaml.Node, first: int | None) -> str:
    """The error of a key that the mapping has on line `first` already; empty if there is none.

    Two spellings of a key, as `a` and `"a"`, are one key. YAML takes the last one in silence.
    """
    if _kind(key.tag) not in ("text", "merge"):
        return f"a key is text, and YAML takes this one for {_kind(key.tag)}; put it in quotes."
    if first == key.start_mark.line + 1:
        return "the key stands twice on this line; keep one of them."
    if first is not None:
        return f"the key stands here and on line {first}; keep one of them."
    return ""


def _kind(tag: str) -> str:
    name = tag.rsplit(":", 1)[-1]
    return KINDS.get(name, name)
