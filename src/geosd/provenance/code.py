"""The code behind a step: the one answer that rules, manifests, `make stale` and DVC share.

It is read from syntax trees, so nothing is imported and nothing is guessed from what happens to be
loaded: a step's module, what it imports of this package, directly or not, the data files that these
modules name, and the modules that the step finds by a name in its settings.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import geosd

SOURCES = Path(geosd.__file__).parents[1]
"""The folder that holds the package."""
CONFIGURATION = "geosd.config"
"""Left out: what it decides reaches a step through its settings."""
DATA_FILES = ("yaml", "jinja", "cpp")
BY_NAME = {"objective": "geosd.objectives", "source": "geosd.problems.sources"}
"""Settings that name a module, and the package in which a step finds it."""
READS = {
    "data": ("source",),
    "pool": ("source",),
    "states": ("source",),
    "train": ("objective", "source"),
    "evaluate": ("source",),
}
"""Steps that find modules by name, and the settings that name them."""


def code_of(
    step: str,
    settings: Mapping[str, Any] | None = None,
    modules: Iterable[str] = (),
    sources: Path = SOURCES,
) -> list[str]:
    """The files of code behind a step: its module and all that it imports of this package.

    Args:
        step: Name of the step's module in `geosd.steps`.
        settings: The step's settings, which may name a data source and an objective.
        modules: Further modules that the step finds by name: a table's or a figure's.
        sources: The folder that holds the package.

    Returns:
        Sorted paths from `sources`, as `geosd/steps/train.py`.
    """
    named = [module_of(key, (settings or {})[key]) for key in READS.get(step, ())]
    return _closure((f"geosd.steps.{step}", *named, *modules), sources)


def module_of(key: str, value: str | Mapping[str, Any]) -> str:
    """The module of code that a setting names: an objective's or a data source's.

    Example:
        >>> module_of("objective", {"name": "geosd"}), module_of("source", "dapo-math")
        ('geosd.objectives.geosd', 'geosd.problems.sources.dapo_math')
    """
    name = value if isinstance(value, str) else value["name"]
    return f"{BY_NAME[key]}.{name.replace('-', '_')}"


@cache
def _closure(modules: tuple[str, ...], sources: Path) -> list[str]:
    files: set[Path] = set()
    visited: set[str] = set()
    queue = list(modules)
    while queue:
        name = queue.pop()
        if name in visited or name.startswith(CONFIGURATION):
            continue
        visited.add(name)
        path = _file_of(name, sources)
        if path is None:
            continue
        imported, data = _read(path)
        files |= {path, *data}
        queue += [name.rpartition(".")[0], *imported]
    return sorted(path.relative_to(sources).as_posix() for path in files)


@cache
def _file_of(name: str, sources: Path) -> Path | None:
    """The file of a module or package; None of a name that is neither."""
    path = sources.joinpath(*name.split("."))
    path = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    return path if path.exists() else None


@cache
def _read(path: Path) -> tuple[list[str], list[Path]]:
    """What may be modules that a file imports of this package; data files that its text names."""
    text = path.read_text(encoding="utf-8")
    names: list[str] = []
    for node in _statements(ast.parse(text)):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and not node.level:
            names += [str(node.module), *(f"{node.module}.{alias.name}" for alias in node.names)]
    neighbours = [file for kind in DATA_FILES for file in path.parent.glob(f"*.{kind}")]
    return (
        [name for name in names if name.split(".")[0] == "geosd"],
        [file for file in neighbours if file.name in text],
    )


def _statements(node: ast.AST) -> Iterator[ast.AST]:
    """Every statement within a node. No import hides in an expression, and these are most nodes."""
    for block in ("body", "handlers", "orelse", "finalbody", "cases"):
        for statement in getattr(node, block, ()):
            yield statement
            yield from _statements(statement)
