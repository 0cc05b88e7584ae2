"""docs/method.md names what exists: functions with the equation's label, and their tests."""

from __future__ import annotations

import ast
import importlib
import inspect
import re
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs/method.md").read_text(encoding="utf-8")

# Every label of an equation in the paper's source, in its order, without "eq:".
EQUATIONS = """
hellinger fr-distance distillation-loss hellinger-grad prox-term full-loss nat-grad fisher-general
fisher-kl fisher-simplex metric-sphere hellinger-chord fr-arc kl-taylor h-taylor fr-taylor
forward-kl reverse-kl alpha-divergence hellinger-grad-app w-fkl w-rkl w-h prox-local
app-checkpoint-pullback
""".split()


class Row(NamedTuple):
    label: str
    name: str
    code: str
    test: str
    test_file: str


def rows() -> list[Row]:
    """The lines of the page's tables that name a function and a test."""
    link = r"\[`(.+?)`\]\(\.\./(.+?)\)"
    pattern = re.compile(rf"^\| `(.+?)` \| .+ \| {link} \| {link} \|$", re.MULTILINE)
    return [Row(*each) for each in pattern.findall(PAGE)]


ROWS = rows()


def test_every_line_of_the_tables_is_read():
    lines = [line for line in PAGE.splitlines() if line.startswith("| `")]
    assert len(lines) == len(ROWS) > 50


def test_every_labelled_equation_has_a_line_in_the_papers_order():
    labels = [row.label for row in ROWS]
    places = [labels.index(label) for label in EQUATIONS]
    assert places == sorted(places)


def resolve(name: str) -> object:
    """A module, or an attribute of one, by its dotted name."""
    parts = name.split(".")
    for size in range(len(parts), 0, -1):
        try:
            value = importlib.import_module(".".join(parts[:size]))
        except ModuleNotFoundError:
            continue
        for part in parts[size:]:
            value = getattr(value, part)
        return value
    raise AssertionError(f"{name} cannot be imported")


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row.label} {row.name}")
def test_the_code_carries_the_label_and_lies_in_the_file(row):
    value = resolve(row.name)
    assert f"({row.label})" in (inspect.getdoc(value) or "").replace("\n", " ")
    assert Path(inspect.getsourcefile(inspect.unwrap(value))) == ROOT / row.code


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row.label} {row.test}")
def test_the_test_exists(row):
    tree = ast.parse((ROOT / row.test_file).read_text(encoding="utf-8"))
    tests = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
    assert row.test in tests
