"""docs/factorial.md and factorial_core.md print what the shipped runs of whole and core say.

All is computed anew by factorial_runs, from the shipped scores and drift.
"""

from __future__ import annotations

import itertools
import math

import factorial_runs as runs
import numpy as np
import pandas as pd
import pytest
import shipped_studies
from scipy import stats
from shipped_studies import page_number

DOCS = shipped_studies.FIGURES.parent / "docs"
PAGES = {"core": DOCS / "factorial_core.md", "whole": DOCS / "factorial.md"}
CORE = {1: "miniature_factorial_core_100", 0: "miniature_factorial_core_0"}
WHOLE = {1: "miniature_factorial_100", 0: "miniature_factorial_0"}
DESIGNS = {"core": CORE, "whole": WHOLE}
STUDIES = [*CORE.values(), *WHOLE.values()]
NEW_DRAWS = {3, 4, 5}


def lines_of_page(design):
    return PAGES[design].read_text(encoding="utf-8").splitlines()


def effects(study):
    return runs.effects_among(*runs.settings(study))


@pytest.mark.parametrize("design", DESIGNS)
def test_the_table_of_effects_is_that_of_the_shipped_runs(design):
    ends = DESIGNS[design]
    rows = [*runs.effect_rows(ends, effects(ends[1]))]
    assert len(rows) == {"core": 5, "whole": 14}[design]
    lines = lines_of_page(design)
    assert [row for row in rows if row not in lines] == []


def test_the_primary_effects_over_the_new_draws_are_those_of_the_shipped_runs():
    lines = lines_of_page("whole")
    rows = [*runs.effect_rows(WHOLE, runs.PRIMARY, NEW_DRAWS)]
    assert [row for row in rows if row not in lines] == []


@pytest.mark.parametrize("study", CORE.values())
def test_the_table_of_cells_is_that_of_the_shipped_runs(study):
    rows = [*runs.cell_rows(study)]
    assert len(rows) == 8
    lines = lines_of_page("core")
    assert [row for row in rows if row not in lines] == []


@pytest.mark.parametrize("study", STUDIES)
def test_the_shipped_table_of_cells_is_recomputed(study):
    table = pd.read_csv(
        shipped_studies.FIGURES / study / "table_factorial.csv",
        index_col="divergence, curvature ratio, optimiser",
    )
    assert len(table) == (8 if study in CORE.values() else 24)
    for pull, ratio, rule in itertools.product(*runs.settings(study), runs.RULES):
        row = table.loc[f"{runs.LABELS[pull]}, {ratio:g}, {runs.LABELS[rule]}"]
        of_cell = [
            path for run, path in runs.paths(study).items() if run[:3] == (pull, ratio, rule)
        ]
        for by, key in (("id", "at_id_gain"), ("drift", "at_drift")):
            reached = [runs.ood_gain(path, by) for path in of_cell]
            reached = [value for value in reached if not math.isnan(value)]
            assert row[f"{key}.n"] == f"{len(reached)} of {len(of_cell)}"
            expected = np.mean(reached) if reached else math.nan
            assert row[key] == pytest.approx(expected, nan_ok=True)
        last = np.mean([path[1:, -1] for path in of_cell], axis=0)
        assert row[["id", "ood_avg", "drift"]].to_list() == pytest.approx(last.tolist())
        collapsed = sum(runs.has_collapsed(path) for path in of_cell)
        assert row["collapsed"] == f"{collapsed} of {len(of_cell)}"


@pytest.mark.parametrize("design", DESIGNS)
def test_the_table_of_collapses_is_that_of_the_shipped_runs(design):
    lines = lines_of_page(design)
    assert [row for row in runs.collapse_rows(DESIGNS[design]) if row not in lines] == []


@pytest.mark.parametrize("design", DESIGNS)
def test_the_primary_tests_are_corrected_over_the_six(design):
    lines = lines_of_page(design)
    assert [row for row in runs.primary_rows(DESIGNS[design]) if row not in lines] == []


def within_a_point(ends, by):
    """Main effects whose interval lies within a point."""
    within = set()
    for (label, changes), end in itertools.product(effects(ends[1]).items(), ends):
        low, high = runs.limits(runs.effect_of_draws(ends[end], by, changes))
        if " at " not in label and low >= -1 and high <= 1:
            within.add((label, end))
    return within


def apart_from_zero(ends):
    """All effects whose interval leaves 0 out, and the number of intervals."""
    apart, intervals = set(), 0
    for (label, changes), by, end in itertools.product(effects(ends[1]).items(), runs.MOVED, ends):
        values = runs.effect_of_draws(ends[end], by, changes)
        if len(values) > 1:
            intervals += 1
            low, high = runs.limits(values)
            if low > 0 or high < 0:
                apart.add((label, by, end))
    return apart, intervals


def test_what_is_said_of_a_point_is_so_of_the_core():
    assert within_a_point(CORE, "id") == {
        ("FwdKL − Hellinger", 1),
        ("FwdKL − Hellinger", 0),
        ("K-FAC − AdamW", 0),
    }
    expected = {("(ratio 8 − ratio 0) at K-FAC − at AdamW", "id", 1)}
    assert apart_from_zero(CORE) == (expected, 20)


def test_what_is_said_of_a_point_is_so_of_the_whole():
    both = {(label, end) for label in ("ratio 8 − ratio 0", "K-FAC − AdamW") for end in (1, 0)}
    jsd = {("JSD − Hellinger", 1), ("JSD − Hellinger", 0)}
    others = {("RevKL − Hellinger", 1), ("ratio 32 − ratio 0", 0)}
    assert within_a_point(WHOLE, "id") == both | jsd | others
    assert both <= within_a_point(WHOLE, "drift")
    expected = {
        ("JSD − Hellinger", "drift", 1),
        ("FwdKL − Hellinger", "drift", 1),
        ("FwdKL − Hellinger", "drift", 0),
        ("RevKL − Hellinger", "drift", 0),
        ("K-FAC − AdamW", "drift", 0),
    }
    assert apart_from_zero(WHOLE) == (expected, 47)


@pytest.mark.parametrize("study", STUDIES)
def test_drift_falls_with_the_ratio_in_every_cell(study):
    drift: dict[tuple, list] = {}
    for (pull, ratio, rule, _), path in runs.paths(study).items():
        drift.setdefault((pull, rule, ratio), []).append(path[3, -1])
    pulls, ratios = runs.settings(study)
    for pull, rule in itertools.product(pulls, runs.RULES):
        for smaller, larger in itertools.pairwise(ratios):
            assert np.mean(drift[pull, rule, larger]) < np.mean(drift[pull, rule, smaller])


def test_how_many_runs_of_the_whole_reach_six_points_and_collapse_is_so():
    reached, collapsed = {}, {}
    for end, study in WHOLE.items():
        for (pull, ratio, _, _), path in runs.paths(study).items():
            reached.setdefault((end, ratio), []).append(not math.isnan(runs.ood_gain(path, "id")))
            collapsed.setdefault((end, ratio, pull), []).append(runs.has_collapsed(path))
    assert [sum(reached[end, 32.0]) for end in (1, 0)] == [18, 32]
    assert all(len(of_ratio) == 48 for of_ratio in reached.values())
    of = {key: int(sum(values)) for key, values in collapsed.items()}
    assert [of[1, 8.0, pull] for pull in ("fwdkl", "revkl", "hellinger", "jsd")] == [9, 4, 2, 0]
    proximal = {
        end: sum(of[end, ratio, pull] for ratio in (8.0, 32.0) for pull in runs.PULLS)
        for end in (1, 0)
    }
    assert proximal == {1: 17, 0: 2}
    assert sum(of[1, 32.0, pull] for pull in runs.PULLS) == 2


def id_gain_at_drift(path):
    """The ID gain where a path first reaches the drift of the endpoint."""
    for i in range(1, path.shape[1]):
        if path[3, i] >= runs.MOVED["drift"]:
            between = slice(i - 1, i + 1)
            return np.interp(runs.MOVED["drift"], path[3, between], path[1, between])
    return math.nan


def test_the_id_gains_at_equal_drift_are_those_of_the_shipped_runs():
    page = " ".join(PAGES["whole"].read_text(encoding="utf-8").split())
    mean = {
        (end, pull): np.nanmean(
            [
                id_gain_at_drift(path)
                for run, path in runs.paths(study).items()
                if run[0] == pull and run[1] < 32
            ]
        )
        for end, study in WHOLE.items()
        for pull in ("fwdkl", "hellinger")
    }
    at = [f"{mean[end, 'fwdkl']:.1f} against {mean[end, 'hellinger']:.1f}" for end in (1, 0)]
    assert f"({at[0]} at conflict 1, {at[1]} at 0, over ratio 0 and 8)" in page


@pytest.mark.parametrize("study", STUDIES)
def test_the_shipped_table_of_effects_is_recomputed(study):
    file = shipped_studies.FIGURES / study / "table_factorial_effects.csv"
    table = pd.read_csv(file, index_col="effect")
    assert set(table.index) == set(effects(study))
    for label, changes in effects(study).items():
        for by, key in (("id", "at_id_gain"), ("drift", "at_drift")):
            values = runs.effect_of_draws(study, by, changes)
            assert int(table.loc[label, f"{key}.draws"]) == len(values)
            if len(values):
                assert table.loc[label, key] == pytest.approx(np.mean(values))
            if len(values) > 1:
                low, high = runs.limits(values)
                assert table.loc[label, f"{key}.sd"] == pytest.approx((high - low) / 2)
                p = stats.ttest_1samp(values, 0).pvalue
                assert table.loc[label, f"{key}.p"] == pytest.approx(p)


def accuracies_of_first_draws(study, variant):
    """avg@16 of a variant's runs on the first three draws."""
    of_runs = shipped_studies.accuracies(study)[variant]
    return of_runs[of_runs.index.get_level_values("draw") < 3]


def test_runs_that_were_shipped_before_have_the_same_accuracies():
    cell = "geosd-divergence_{}-drift_penalty_{}-rule_{}-learning_rate_3e-05-steps_{}"
    same = {
        "fwdkl-learning_rate_3e-05-steps_24": cell.format("fwdkl", "0.0", "adamw", 24),
        "fwdkl-learning_rate_3e-05-steps_200": cell.format("fwdkl", "0.0", "adamw", 200),
        "geosd-learning_rate_3e-05-steps_200": cell.format("hellinger", "1.0", "kfac", 200),
    }
    for before, now in same.items():
        expected = accuracies_of_first_draws("miniature_stepsize", before)
        assert len(expected) >= 6
        pd.testing.assert_series_equal(accuracies_of_first_draws(CORE[1], now), expected)


@pytest.mark.parametrize("end", CORE)
def test_the_whole_gives_the_accuracies_of_the_core_again(end):
    variants = shipped_studies.accuracies(CORE[end]).index.unique("variant")
    assert len(variants) == 33  # eight cells with four stops, and π₀
    for variant in variants:
        pd.testing.assert_series_equal(
            accuracies_of_first_draws(WHOLE[end], variant),
            accuracies_of_first_draws(CORE[end], variant),
        )


def largest_mean_id_gains(study, pull):
    """The largest ID gain of the mean path of each cell at ratio 0 and 8."""
    return [
        np.mean(
            [path[1] for run, path in runs.paths(study).items() if run[:3] == cell], axis=0
        ).max()
        for cell in itertools.product([pull], (0.0, 8.0), runs.RULES)
    ]


def test_the_largest_mean_id_gains_of_the_core_are_those_of_the_shipped_runs():
    page = PAGES["core"].read_text(encoding="utf-8")
    for pull in ("hellinger", "fwdkl"):
        most = largest_mean_id_gains(CORE[1], pull)
        assert f"{runs.LABELS[pull]} {min(most):.1f} to {max(most):.1f}" in page


def test_the_largest_mean_id_gains_of_the_whole_are_those_of_the_shipped_runs():
    lines = lines_of_page("whole")
    for pull in runs.PULLS:
        cells = []
        for study in WHOLE.values():
            most = largest_mean_id_gains(study, pull)
            cells.append(f"{page_number(min(most))} to {page_number(max(most))}")
        assert f"| {runs.LABELS[pull]} | {' | '.join(cells)} |" in lines
