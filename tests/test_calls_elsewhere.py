"""Files that most machines skip call the package by names that its functions have."""

from __future__ import annotations

import ast
import importlib
import inspect
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SKIPPED = [
    path.relative_to(ROOT)
    for folder in ("tests", "benchmarks", "examples")
    for path in sorted((ROOT / folder).rglob("*.py"))
    if path != Path(__file__)
    and ("benchmarks/gpu" in str(path) or "is not installed" in path.read_text("utf-8"))
]
"""Files that need vLLM, verl, TRL, peft or a GPU."""


def calls(tree: ast.Module) -> Iterator[tuple[str, str, ast.Call]]:
    """Module, name and call of each function or class that a file imports from the package."""
    imported = {
        alias.asname or alias.name: (node.module, alias.name)
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and str(node.module).startswith("geosd")
        for alias in node.names
    }
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=ast.Name(id=name)) if name in imported:
                yield *imported[name], node
            case ast.Call(func=ast.Attribute(value=ast.Name(id=module), attr=name)):
                if module in imported:
                    yield ".".join(imported[module]), name, node


def unknown_keywords(source: str) -> list[str]:
    """Line and keyword of each call with one that the function does not have."""
    found = []
    for module, name, call in calls(ast.parse(source)):
        try:
            called = getattr(importlib.import_module(module), name)
        except ModuleNotFoundError:  # it needs what is not installed, or `module` is a class
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


@pytest.mark.parametrize("path", SKIPPED, ids=str)
def test_calls_have_keywords_of_the_function(path):
    assert unknown_keywords((ROOT / path).read_text("utf-8")) == []


def test_a_keyword_that_was_renamed_is_found():
    source = "from geosd.sampling.vllm_sampler import VllmSampler as S\nS(open, [1], shard=2)"
    assert unknown_keywords(source) == ["line 2: VllmSampler(shard=)"]
