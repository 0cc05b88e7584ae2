"""A run collapses by one rule, and every count of collapses asks that rule."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pandas as pd

from geosd.scores.collapse import COLLAPSE, ON_TEST, ON_VALIDATION, collapse_rule, collapses

ROOT = Path(__file__).parents[2]
SOURCES = ROOT / "src/geosd"
RULE = SOURCES / "scores/collapse.py"


def test_ten_points_on_any_of_the_problems_are_a_collapse():
    gains = pd.DataFrame(
        {
            "id": [9.4, -10.0, -9.99, 3.0, np.nan, np.nan],
            "ood_avg": [-12.9, 5.0, -9.99, 3.0, -10.0, 2.0],
        },
        index=list("abcdef"),
    )
    fallen = collapses(gains)
    assert list(fallen.index[fallen]) == ["a", "b", "e"]
    assert COLLAPSE == 10


def test_on_problems_in_distribution_alone_a_loss_out_of_it_is_not_seen():
    gains = pd.DataFrame({"id": [9.4], "ood_avg": [-12.9]})
    assert collapses(gains).tolist() == [True]
    assert collapses(gains[["id"]]).tolist() == [False]


def test_the_rule_in_words_says_on_which_problems():
    for problems in (ON_TEST, ON_VALIDATION):
        words = collapse_rule(problems)
        assert "10 points or more below π₀" in words and words.endswith(f"{problems}.")
    assert "out of distribution" in ON_TEST and "ID validation" in ON_VALIDATION


def test_no_other_module_compares_with_the_ten_points():
    comparison = re.compile(r"[<>]=?[^\n]*\bCOLLAPSE\b|\bCOLLAPSE\b[^\n]*[<>]=?")
    drawn = SOURCES / "reporting/figure_rates.py"  # whether its frame has the grey region
    found = {
        path
        for path in SOURCES.rglob("*.py")
        if comparison.search(path.read_text(encoding="utf-8"))
    }
    assert found == {RULE, drawn}


def test_every_shipped_table_that_counts_collapses_says_on_which_problems():
    says = re.compile(r"\bcollaps")
    tables = [
        path
        for path in sorted(ROOT.glob("figures/*/table_*.md"))
        if "caption" not in path.name and says.search(path.read_text(encoding="utf-8"))
    ]
    assert len(tables) > 20
    for path in tables:
        text = " ".join(path.read_text(encoding="utf-8").split())
        assert ON_TEST in text or ON_VALIDATION in text, path
