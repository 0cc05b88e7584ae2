"""analysis/density.py on sources whose nodes are counted by hand."""

from __future__ import annotations

import ast
import runpy
from pathlib import Path

import pytest

PROGRAM = runpy.run_path(str(Path(__file__).parents[1] / "analysis/density.py"))

DOCUMENTED = '''"""What it is.

Of two paragraphs.
"""

import os  # left out


def f():
    """And so is this."""
    # a comment
    return (
        1
    )
'''


@pytest.mark.parametrize(
    ("source", "nodes", "lines"),
    [
        ("x = 1\n", 5, 1),  # Module, Assign, Name, Store, Constant
        ("x = 1; y = 2\n", 9, 1),
        ("x = 1\n\n# a comment\ny = 2\n", 9, 2),
        (DOCUMENTED, 5, 3),  # Module, FunctionDef, arguments, Return, Constant
        ("'a string that is no docstring' + x\n", 7, 1),
        ('"""A page of words."""\n', 1, 0),
    ],
)
def test_nodes_and_lines_are_those_counted_by_hand(source, nodes, lines):
    assert PROGRAM["nodes_and_lines"](ast.parse(source)) == (nodes, lines)


def test_files_are_listed_with_the_densest_first(tmp_path, capsys):
    (tmp_path / "loose.py").write_text("x = 1\n")
    (tmp_path / "dense.py").write_text("x = 1; y = 2\n")
    (tmp_path / "words.py").write_text('"""No code."""\n')
    PROGRAM["main"]([tmp_path])
    _, *rows = capsys.readouterr().out.splitlines()
    assert [row.split()[:3] for row in rows] == [["9.0", "9", "1"], ["5.0", "5", "1"]]
    assert rows[0].endswith("dense.py")
