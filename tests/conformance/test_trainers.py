"""The page of other trainers' losses is what the kit says of them, where they are installed."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest

from geosd.conformance import ConformanceResult

ROOT = Path(__file__).parents[2]
PROGRAM = ROOT / "analysis/conformance_of_trainers.py"


def load():
    spec = importlib.util.spec_from_file_location(PROGRAM.stem, PROGRAM)
    module = sys.modules[PROGRAM.stem] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


trainers = load()
PAGE = PROGRAM.with_suffix(".md").read_text(encoding="utf-8")
ROWS = [line for line in PAGE.splitlines() if line.startswith("| ")][1:]


def test_the_page_has_a_row_for_each_loss_and_its_version():
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in ROWS]
    named = [(cell[0], cell[1]) for cell in cells]
    assert named == [
        (f"{of.program} {trainers.VERSIONS.get(of.program, '')}".strip(), of.function)
        for of in trainers.LOSSES
    ]
    assert PAGE.startswith(trainers.HEAD)
    for of, cell in zip(trainers.LOSSES, cells, strict=True):
        assert cell[4].startswith("not run: ") == (of.make is None)


@pytest.mark.parametrize(
    ("of", "row"),
    [*zip(trainers.LOSSES, ROWS, strict=True)],
    ids=[f"{of.program} {of.function}" for of in trainers.LOSSES],
)
def test_a_row_is_what_the_kit_says_of_the_loss(of, row):
    reason = trainers.why_not(of)
    if of.make is not None and reason:
        made_with = trainers.VERSIONS[of.program]
        pytest.skip(f"{reason}; the page was made with {of.program} {made_with}")
    said, shown = trainers.outcome(of), row.rpartition(" | ")[2].removesuffix(" |")
    # The last digits of errors are the machine's.
    assert shown.partition(", errors up to")[0] == said.partition(", errors up to")[0]


def test_words_name_each_fault_with_its_cases():
    rows = [
        ConformanceResult("a", 1e-7, 2e-6, ()),
        ConformanceResult("b", 1, 1, ("x", "y")),
        ConformanceResult("c", 1, 1, ("z",)),
    ]
    assert trainers.words(rows[:1]) == "agrees in 1 cases, errors up to 2e-06"
    assert trainers.words(rows) == "differs in 2 of 3 cases: x; or y (b). z (c)"
