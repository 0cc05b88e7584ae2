"""What a program takes, read from its source, so that nothing of what it imports is loaded.

A program is a function, whose signature and docstring tyro makes into a command line. Most import
torch, transformers, pandas or matplotlib, which takes seconds. A help text and the refusal of an
argument need none of them.
"""

import ast
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any


def signature_first_line(module: str, function: str) -> str:
    """The first line of a program's docstring; `module` is in `geosd.cli`."""
    return (ast.get_docstring(_defined(_parsed(module), function)) or "").split("\n")[0]


def signature_of(module: str, function: str) -> Callable[..., dict[str, Any]]:
    """A function that takes what a program takes, and returns its arguments by their names.

    Of the program's module only the imports of names in the signature are executed: the types of
    arguments and their defaults. So a signature must name nothing that its module defines.

    Args:
        module: In `geosd.cli`.
        function: The program's name in it.
    """
    tree = _parsed(module)
    program = _defined(tree, function)
    named = {node.id for node in ast.walk(program.args) if isinstance(node, ast.Name)}
    docstring = program.body[0]
    program.body = [docstring, *ast.parse("return locals()", mode="exec").body]
    program.returns = None
    alone = ast.Module([*_imports_of(tree, named), program], type_ignores=[])
    namespace: dict[str, Any] = {"__name__": f"geosd.cli.{module}"}
    exec(compile(ast.fix_missing_locations(alone), str(_file(module)), "exec"), namespace)
    return namespace[function]


def _imports_of(tree: ast.Module, named: set[str]) -> Iterator[ast.stmt]:
    """The imports at the top of a module that bind some names, without all other names."""
    for statement in tree.body:
        if not isinstance(statement, ast.Import | ast.ImportFrom):
            continue
        statement.names = [
            alias
            for alias in statement.names
            if (alias.asname or alias.name.partition(".")[0]) in named
        ]
        if statement.names:
            yield statement


def _defined(tree: ast.Module, function: str) -> ast.FunctionDef:
    """The definition of a function of a module."""
    (found,) = (
        node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == function
    )
    return found


def _parsed(module: str) -> ast.Module:
    return ast.parse(_file(module).read_text(encoding="utf-8"))


def _file(module: str) -> Path:
    return Path(__file__).with_name(f"{module}.py")
