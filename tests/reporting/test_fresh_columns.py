"""Fresh benchmarks and intervals in the tables: further columns, and no other one moved."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from geosd.reporting import table_benchmarks, table_main, table_significance
from geosd.reporting.latex_tables import to_latex
from geosd.reporting.tables import table_to_markdown
from geosd.scores.tidy import COLUMNS

METHODS = ["pi_0", "fwdkl", "geosd"]
MODEL = "mini-qwen3"
NO_DRIFT = pd.DataFrame(columns=list(COLUMNS["drift"]))
NO_SHARES = pd.DataFrame(columns=list(COLUMNS["shares"]))


@pytest.fixture
def scores(make):
    return make(variants=METHODS)


@pytest.fixture
def with_fresh(scores):
    """The scores, and those of two fresh benchmarks, on which everybody is at 1 and 2 percent."""
    added = []
    for name, value in (("fresh-aime26", 1.0), ("fresh-hmmt_feb26", 2.0)):
        rows = scores[scores["benchmark"] == "long"]
        added.append(rows.assign(benchmark=name, split="fresh", value=value))
    return pd.concat([scores, *added], ignore_index=True)


def main_table(scores, shares=NO_SHARES):
    return table_main.build(scores, NO_DRIFT, shares, [MODEL], METHODS)


def cells(table, key):
    at = [column.key for column in table.columns].index(key)
    return {row.label: row.cells[at] for row in table.rows}


@pytest.mark.parametrize("build", [main_table, None], ids=["main", "benchmarks"])
def test_fresh_benchmarks_have_a_group_of_their_own_and_move_no_other_column(
    scores, with_fresh, build
):
    build = build or (lambda of: table_benchmarks.build(of, [MODEL], METHODS))
    before, after = build(scores), build(with_fresh)
    groups = {column.key: column.group for column in after.columns}
    fresh = [key for key in groups if "fresh-" in key]
    assert fresh == [f"{MODEL}.fresh-aime26", f"{MODEL}.fresh-hmmt_feb26"]
    assert {groups[key] for key in fresh} == {f"{MODEL}, fresh benchmarks"}
    assert [cell.value for cell in cells(after, fresh[1]).values()] == [2.0] * 3
    for column in before.columns:
        assert cells(after, column.key) == cells(before, column.key)
    assert "Fresh benchmarks stand apart" in after.note
    assert "Fresh" not in before.note and len(after.columns) == len(before.columns) + 2
    text = table_to_markdown(after)
    assert f"## {MODEL}, fresh benchmarks" in text and " hmmt_feb26 |" in text
    assert r"hmmt\_feb26" in to_latex(after)


@pytest.mark.slow
def test_the_papers_tests_do_not_know_fresh_benchmarks(scores, with_fresh):
    tables = [table_significance.build(of, [MODEL], METHODS) for of in (scores, with_fresh)]
    assert tables[0] == tables[1]


def shares(draws):
    """Shares of pi_0 and two methods on ten problems of two benchmarks, and on a fresh one."""
    draw, rows = np.random.default_rng(3), []
    for gain, variant in enumerate(METHODS):
        for seed, of in enumerate(draws):
            for benchmark in ("id", "long", "easy", "fresh-aime26"):
                for problem in range(10):
                    right = draw.binomial(16, 0.2 + 0.15 * gain) / 16
                    rows.append((MODEL, variant, seed, of, benchmark, f"p{problem}", 16, right))
    return pd.DataFrame(rows, columns=list(COLUMNS["shares"]))


def ends(text):
    return [float(number.replace("−", "-")) for number in text.strip("[]").split(", ")]


def bootstrap(gaps, with_seeds, times=4000):
    """The ends of the middle 95 % of means of [benchmark, seed, problem], drawn index by index."""
    draw, means = np.random.default_rng(1), []
    for _ in range(times):
        seeds = np.arange(gaps.shape[1])
        if with_seeds:
            seeds = draw.integers(len(seeds), size=len(seeds))
        problems = draw.integers(gaps.shape[2], size=(len(gaps), gaps.shape[2]))
        drawn = zip(gaps, problems, strict=True)
        means.append(np.mean([of[np.ix_(seeds, at)].mean() for of, at in drawn]))
    return np.quantile(means, [0.025, 0.975])


@pytest.mark.parametrize("draws", [(0, 0, 0, 0), (0, 0, 1, 1)], ids=["seeds", "base models"])
def test_the_intervals_of_the_change_are_numpys_of_the_shares(scores, draws):
    table = shares(draws)
    shown = main_table(scores, table)
    rows = table[table["benchmark"].isin(["easy", "long"])]
    values = rows.set_index(["variant", "benchmark", "seed", "problem_id"])["share"].sort_index()
    gaps = 100 * (values["geosd"] - values["pi_0"]).to_numpy().reshape(2, 4, 10)
    if draws[-1]:
        gaps = gaps.reshape(2, 2, 2, 10).mean(axis=2)
    for key, with_seeds in (("problems", False), ("problems_and_seeds", True)):
        column = cells(shown, f"{MODEL}.delta_ood.{key}")
        assert column["π₀"].value is None
        assert ends(column["GeoSD"].value) == pytest.approx(bootstrap(gaps, with_seeds), abs=1.0)
    assert "Owen 2007" in shown.note


def test_a_study_without_shares_has_the_table_that_it_had(scores):
    table = main_table(scores)
    assert [column.label for column in table.columns] == ["ID", "OOD avg.", "Δ OOD"]
    assert "bootstrap" not in table.note
