"""Files outside the package call it by keywords that its functions have, those skipped here too."""

from __future__ import annotations

import ast
import inspect
import pydoc
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[1]
FILES = [
    path.relative_to(ROOT)
    for folder in ("analysis", "benchmarks", "examples", "tests")
    for path in sorted((ROOT / folder).rglob("*.py"))
]


def calls(tree: ast.Module) -> Iterator[tuple[str, str, ast.Call]]:
    """Module, name and call of each function that a file imports and calls with keywords."""
    imported = {
        alias.asname or alias.name: (node.module, alias.name)
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and str(node.module).startswith("geosd")
        for alias in node.names
    }
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=ast.Name(id=name), keywords=[_, *_]) if name in imported:
                yield *imported[name], node
            case ast.Call(func=ast.Attribute(ast.Name(id=name), attr), keywords=[_, *_]):
                if name in imported:
                    yield ".".join(imported[name]), attr, node


located = cache(pydoc.locate)


def unknown_keywords(source: str) -> list[str]:
    """Line and keyword of each call with one that the function does not have."""
    found = []
    for module, name, call in calls(ast.parse(source)):
        try:
            called = located(f"{module}.{name}")
        except (pydoc.ErrorDuringImport, ModuleNotFoundError):  # it needs what is not installed
            continue
        if not callable(called):
            found.append(f"line {call.lineno}: {name}()")
            continue
        parameters = inspect.signature(called).parameters.values()
        if any(p.kind is p.VAR_KEYWORD for p in parameters):
            continue
        names = {p.name for p in parameters}
        found += [
            f"line {call.lineno}: {name}({word.arg}=)"
            for word in call.keywords
            if word.arg is not None and word.arg not in names
        ]
    return found


def test_calls_have_keywords_of_the_function():
    found = {path: unknown_keywords((ROOT / path).read_text("utf-8")) for path in FILES}
    assert len(found) > 300 and {str(path): lines for path, lines in found.items() if lines} == {}


def test_a_keyword_that_was_renamed_is_found():
    source = "from geosd.sampling.vllm_sampler import VllmSampler as S\nS(open, [1], shard=2)"
    assert unknown_keywords(source) == ["line 2: VllmSampler(shard=)"]
