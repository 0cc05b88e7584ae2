"""docs/decisions.md lists every private name of another package that the sources lean on."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

PUBLIC = {"_exit", "_replace", "_fields", "_asdict"}
"""Names of Python's own that begin with an underscore and are documented."""


def is_private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__") and name not in PUBLIC


def own_names(tree: ast.AST) -> set[str]:
    """What a module defines: functions, classes, variables, attributes that it sets."""
    names = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.Name | ast.Attribute) and isinstance(node.ctx, ast.Store):
            names.add(node.id if isinstance(node, ast.Name) else node.attr)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            names.add(node.value)  # of __slots__
    return names


def foreign_private_names(tree: ast.AST) -> set[str]:
    """Private names that a module takes from elsewhere; what `super()` has is never its own."""
    own, found = own_names(tree), set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            of_parent = isinstance(node.value, ast.Call) and ast.unparse(node.value) == "super()"
            if of_parent or node.attr not in own or ast.unparse(node.value).endswith("config"):
                found.add(node.attr)
        elif isinstance(node, ast.ImportFrom):
            found |= {*str(node.module).split("."), *(alias.name for alias in node.names)}
        elif isinstance(node, ast.Import):
            found |= {part for alias in node.names for part in alias.name.split(".")}
    return set(filter(is_private, found))


@pytest.fixture(scope="module")
def listed(root: Path) -> dict[tuple[str, str], str]:
    """File and name -> package and version, of the table."""
    text = (root / "docs/decisions.md").read_text(encoding="utf-8")
    section = text.partition("## Private names of other packages\n")[2].partition("\n## ")[0]
    rows = [
        [cell.strip(" `") for cell in line.strip("|").split(" | ")]
        for line in section.splitlines()
        if line.startswith("| `")
    ]
    return {(file, name): package for name, file, package, _ in rows}


@pytest.mark.slow
def test_the_sources_take_no_other_private_name(root: Path, listed: dict[tuple[str, str], str]):
    files = [*(root / "src").rglob("*.py"), *(root / "workflow").rglob("*.py")]
    found = {
        (path.relative_to(root).as_posix(), name)
        for path in files
        for name in foreign_private_names(ast.parse(path.read_text(encoding="utf-8")))
    }
    assert found == {(file, name) for file, name in listed if is_private(name)}
    for file, name in listed:
        assert name in (root / file).read_text(encoding="utf-8"), (file, name)


def test_each_was_tested_on_the_version_that_is_pinned(root: Path, listed):
    files = sorted((root / "envs").glob("*.txt"))
    # verl.txt has the versions that verl allows; it is installed apart, and comes first.
    files.sort(key=lambda path: path.name != "verl.txt")
    locks = "".join(path.read_text() for path in files)
    pinned = dict(re.findall(r"^([a-z0-9-]+)==([\w.]+)", locks, re.M))
    for (file, name), package in listed.items():
        of, version = package.split()
        assert of == "Python" or pinned[of] == version, (file, name)
