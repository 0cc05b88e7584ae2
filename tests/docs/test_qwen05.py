"""The table of mismatch of docs/qwen05.md is that of the sums by problem, recomputed here."""

from __future__ import annotations

import csv
import runpy
from pathlib import Path

import pandas as pd
import pytest

ROOT = Path(__file__).parents[2]
FILES = {
    "qwen05_mismatch.csv": ("human", "own", "answer"),
    "qwen05_mismatch_without_annotations.csv": ("human",),
}


def sums_of(file):
    """(prompt, solutions, wording) -> its rows, one a problem."""
    found: dict[tuple, list] = {}
    with (ROOT / "docs/measurements" / file).open(encoding="utf-8", newline="") as lines:
        for row in csv.DictReader(lines):
            key = row["prompt"], row["solutions"], row["wording"]
            found.setdefault(key, []).append(row)
    return found


def total(rows, name):
    return sum(float(row[name]) for row in rows)


def shown(key, rows):
    """The row of the page."""
    states, mismatch = (int(total(rows, name)) for name in ("states", "mismatch"))
    of_uncertain = 100 * total(rows, "uncertain_mismatch") / total(rows, "uncertain")
    means = [total(rows, name) / states for name in ("q_star", "p_star", "overlap", "entropy")]
    cells = [
        *key,
        str(len(rows)),
        f"{states:,}",
        f"{100 * mismatch / states:.2f} %",
        f"{of_uncertain:.1f} %",
        f"{total(rows, 'first_mismatch'):.0f} of {mismatch}",
        *(f"{mean:.3f}" for mean in means),
    ]
    return f"| {' | '.join(cells)} |"


@pytest.fixture(scope="module")
def page():
    return (ROOT / "docs/qwen05.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("file", FILES)
def test_each_row_of_the_page_is_that_of_its_sums(page, file):
    sums = sums_of(file)
    assert len(sums) == 6 * len(FILES[file])
    for key, rows in sums.items():
        assert shown(key, rows) in page.splitlines(), key


def shares(file, prompt, solutions):
    """The mismatch in percent of the states, for each wording."""
    rows = [value for key, value in sums_of(file).items() if key[:2] == (prompt, solutions)]
    assert len(rows) == 3
    return [100 * total(row, "mismatch") / total(row, "states") for row in rows]


def test_what_the_page_says_of_the_rows_is_so(page):
    file = "qwen05_mismatch.csv"
    plain, after = (
        shares(file, prompt, "human") for prompt in ("plain instruction", "three examples")
    )
    factors = [b / a for a, b in zip(plain, after, strict=True)]
    assert 4 <= min(factors) and max(factors) < 8 and "by a factor of four to eight" in page
    assert after[2] < 2 * min(after[:2]) and plain[2] == pytest.approx(plain[0])
    every = [share for key in sums_of(file) for share in shares(file, *key[:2])]
    assert max(every) == pytest.approx(100 * 9 / 481) and "1.87 %, nine states of 481" in page
    bare = "qwen05_mismatch_without_annotations.csv"
    assert min(shares(bare, "plain instruction", "human")) >= min(plain) - 1e-9
    bare_after = shares(bare, "three examples", "human")
    ends = [min(bare_after), max(bare_after), min(after), max(after)]
    words = [f"{end:.2f}".removeprefix("0") for end in ends]
    assert "it is {} to {} %, in place of {} to {} %".format(*words) in page
    for file in FILES:
        for rows in sums_of(file).values():
            sure, same = (
                total(rows, name) / total(rows, "states") for name in ("q_star", "p_star")
            )
            assert 0.835 < sure < 0.905 and abs(sure - same) < 0.06


def test_the_sums_of_the_program_count_each_state_once():
    program = runpy.run_path(str(ROOT / "analysis/mismatch_sources.py"))
    states = pd.DataFrame(
        {
            "problem": ["a", "a", "a", "b"],
            "position": [0, 1, 2, 0],
            "q_star": [0.9, 0.9, 0.7, 0.95],
            "p_star": [0.05, 0.5, 0.05, 0.01],
            "overlap": [0.2, 0.8, 0.3, 0.1],
            "entropy": [2.0, 1.0, 0.5, 3.0],
            "selected": [True, False, True, False],
            "prompt": "plain",
            "solutions": "human",
            "wording": "w",
        }
    )
    sums = program["by_problem"](states).reset_index("problem")
    assert list(sums["problem"]) == ["a", "b"]
    assert list(sums["states"]) == [3, 1]
    assert list(sums["mismatch"]) == [1, 1]
    assert list(sums["uncertain"]) == [2, 0]
    assert list(sums["uncertain_mismatch"]) == [1, 0]
    assert list(sums["first_mismatch"]) == [1, 1]
    assert list(sums["entropy"]) == [3.5, 3.0]
    line = program["summary"](states)
    assert line[:4] == ["2", "4", "50.00 %", "50.0 %"]
