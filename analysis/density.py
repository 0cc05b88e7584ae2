"""How dense the code is: syntax nodes a line of code, by file, the densest first.

    python analysis/density.py [FILE_OR_FOLDER ...]       # default: src, workflow and analysis

Imports, docstrings, comments and blank lines are left out of both counts. A file above 13 nodes a
line is where to look for expressions that need a name and for several steps in one statement.
Thirteen is no limit: a formula or a table of values may be dense and read well.
"""

import ast
import sys
from pathlib import Path

DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


def left_out(node: ast.AST, parent: ast.AST) -> bool:
    """Whether a node is an import, or the docstring of its parent."""
    if isinstance(node, (ast.Import, ast.ImportFrom)):
        return True
    if not isinstance(parent, DOCUMENTED) or ast.get_docstring(parent) is None:
        return False
    return node is parent.body[0]


def nodes_and_lines(tree: ast.Module) -> tuple[int, int]:
    """The nodes of a syntax tree, and the lines that at least one of them begins on."""
    nodes, lines, todo = 0, set(), [tree]
    while todo:
        node = todo.pop()
        nodes += 1
        if hasattr(node, "lineno"):
            lines.add(node.lineno)
        todo += [child for child in ast.iter_child_nodes(node) if not left_out(child, node)]
    return nodes, len(lines)


def main(paths: list[Path]) -> None:
    """Print nodes a line, nodes and lines of every Python file at or under `paths`."""
    rows = []
    for path in paths:
        for file in path.rglob("*.py") if path.is_dir() else [path]:
            nodes, lines = nodes_and_lines(ast.parse(file.read_text(encoding="utf-8")))
            if lines:
                rows.append((nodes / lines, nodes, lines, file.as_posix()))
    print("nodes/line   nodes  lines  file")
    for density, nodes, lines, name in sorted(rows, reverse=True):
        print(f"{density:10.1f}  {nodes:6d}  {lines:5d}  {name}")


if __name__ == "__main__":
    main([Path(argument) for argument in sys.argv[1:] or ("src", "workflow", "analysis")])
