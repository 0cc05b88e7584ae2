"""docs/factorial.md prints what the shipped runs of the factorial's core say.

All is computed anew from the shipped scores and drift, with numpy, pandas and scipy alone.
"""

from __future__ import annotations

import itertools
import math
import re
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import stats

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs/factorial.md"
ENDS = {1: "miniature_factorial_core_100", 0: "miniature_factorial_core_0"}
CANDIDATE = re.compile(
    r"geosd-divergence_(?P<pull>\w+)-drift_penalty_(?P<penalty>[\d.]+)-rule_(?P<rule>\w+)"
    r"-learning_rate_3e-05-steps_(?P<steps>\d+)"
)
PULLS = {"hellinger": ("Hellinger", 1 / 8), "fwdkl": ("FwdKL", 1 / 2)}
RULES = {"kfac": "K-FAC", "adamw": "AdamW"}
NAMES = {pull: name for pull, (name, _) in PULLS.items()}
MOVED = {"id": 6.0, "drift": 0.10}
MAIN = {
    "FwdKL − Hellinger": {"pull": ("fwdkl", "hellinger")},
    "ratio 8 − ratio 0": {"ratio": (8.0, 0.0)},
    "K-FAC − AdamW": {"rule": ("kfac", "adamw")},
}
BETWEEN = {
    "(FwdKL − Hellinger) at ratio 8 − at ratio 0": ("FwdKL − Hellinger", "ratio 8 − ratio 0"),
    "(ratio 8 − ratio 0) at K-FAC − at AdamW": ("ratio 8 − ratio 0", "K-FAC − AdamW"),
}


@cache
def paths(study):
    """(pull, ratio, rule, draw) -> columns ID gain, OOD gain and drift of the path from π₀."""
    source = ROOT / "figures" / study / "source"
    (file,) = source.glob("scores.csv*")
    scores = pd.read_csv(file).query("metric == 'avg@k'")
    accuracy = scores.set_index(["variant", "draw", "benchmark"])["value"]
    moved = pd.read_csv(source / "drift.csv").query("quantity == 'drift/pi_0'")
    drift = moved.set_index(["variant", "draw"])["value"]
    found: dict[tuple, list] = {}
    for name, draw in drift.index:
        part = CANDIDATE.fullmatch(name)
        ratio = float(part["penalty"]) / PULLS[part["pull"]][1]
        gains = [
            accuracy[name, draw, benchmark] - accuracy["pi_0", draw, benchmark]
            for benchmark in ("id", "ood_avg")
        ]
        point = (int(part["steps"]), *gains, drift[name, draw])
        found.setdefault((part["pull"], ratio, part["rule"], draw), []).append(point)
    return {
        cell: np.array([(0, 0, 0, 0), *sorted(points)], dtype=float).T
        for cell, points in found.items()
    }


def ood_gain(path, by):
    """OOD gain where the path has first moved so far; None where it never does."""
    moved, ood = path[{"id": 1, "drift": 3}[by]], path[2]
    for i in range(1, len(moved)):
        if moved[i] >= MOVED[by]:
            return float(np.interp(MOVED[by], moved[i - 1 : i + 1], ood[i - 1 : i + 1]))
    return None


def contrast(study, by, changes):
    """A difference, or difference of differences, in each draw that has one."""
    values = {cell: ood_gain(path, by) for cell, path in paths(study).items()}
    levels = [sorted({cell[i] for cell in values}) for i in range(4)]
    factors = ("pull", "ratio", "rule")
    found = []
    for draw in levels[3]:
        fixed = [[None] if factor in changes else levels[i] for i, factor in enumerate(factors)]
        each = []
        for cell in itertools.product(*fixed):
            total = 0.0
            for sides in itertools.product((0, 1), repeat=len(changes)):
                at = dict(zip(factors, cell, strict=True))
                for (factor, ends), side in zip(changes.items(), sides, strict=True):
                    at[factor] = ends[side]
                value = values[(*at.values(), draw)]
                total += math.nan if value is None else (-1) ** sum(sides) * value
            each.append(total)
        if np.isfinite(each).any():
            found.append(np.nanmean(each))
    return np.array(found)


def effects():
    yield from MAIN.items()
    for label, (first, second) in BETWEEN.items():
        yield label, MAIN[first] | MAIN[second]


def number(value, form="+.1f"):
    text = format(value, form)
    text = text if float(text) else text.lstrip("+-")
    return text.replace("-", "−")


def interval(values):
    if len(values) == 0:
        return "–"
    mean = number(np.mean(values))
    if len(values) == 1:
        return f"{mean} (n = 1)"
    low, high = stats.ttest_1samp(values, 0).confidence_interval(0.95)
    return f"{mean} [{number(low)}, {number(high)}] (n = {len(values)})"


def effect_rows():
    """The page's table of effects, line by line."""
    for label, changes in effects():
        cells = [interval(contrast(study, by, changes)) for by in MOVED for study in ENDS.values()]
        yield f"| {label} | {' | '.join(cells)} |"


def cell_rows(study):
    """The page's table of cells at one end, line by line."""
    for pull, ratio, rule in itertools.product(PULLS, (0.0, 8.0), RULES):
        runs = [path for cell, path in paths(study).items() if cell[:3] == (pull, ratio, rule)]
        cells = []
        for by in MOVED:
            reached = [value for path in runs if (value := ood_gain(path, by)) is not None]
            mean = number(np.mean(reached)) if reached else "–"
            cells.append(f"{mean} ({len(reached)} of {len(runs)})")
        last = np.mean([path[1:, -1] for path in runs], axis=0)
        fallen = sum((path[1:3, -1] <= -10).any() for path in runs)
        cells += [number(last[0]), number(last[1]), f"{last[2]:.3f}", f"{fallen} of {len(runs)}"]
        yield f"| {PULLS[pull][0]}, {ratio:g}, {RULES[rule]} | {' | '.join(cells)} |"


def collapse_rows():
    """The page's table of collapses by part, line by line, with conflict 1 first."""
    for part, settings in {0: PULLS, 1: (0.0, 8.0), 2: RULES}.items():
        for setting in settings:
            cells = []
            for study in ENDS.values():
                runs = [path for cell, path in paths(study).items() if cell[part] == setting]
                fallen = sum((path[1:3, -1] <= -10).any() for path in runs)
                cells.append(f"{fallen} of {len(runs)}")
            label = f"ratio {setting:g}" if part == 1 else (RULES | NAMES)[setting]
            yield f"| {label} | {' | '.join(cells)} |"


def primary_p():
    """Holm's p of each primary test, by effect and end, by hand over the six."""
    tests = {}
    for label, end in itertools.product(MAIN, ENDS):
        values = contrast(ENDS[end], "id", MAIN[label])
        tests[label, end] = stats.ttest_1samp(values, 0).pvalue if len(values) > 1 else math.nan
    known = sorted((p, key) for key, p in tests.items() if math.isfinite(p))
    corrected, least = {}, 0.0
    for rank, (p, key) in enumerate(known):
        least = max(least, min(1.0, (len(known) - rank) * p))
        corrected[key] = least
    return corrected


def primary_rows():
    corrected = primary_p()
    for label in MAIN:
        cells = [
            f"{corrected[label, end]:.2f}" if (label, end) in corrected else "–" for end in ENDS
        ]
        yield f"| {label} | {' | '.join(cells)} |"


def test_the_table_of_effects_is_that_of_the_shipped_runs():
    lines = PAGE.read_text(encoding="utf-8").splitlines()
    assert [line for line in effect_rows() if line not in lines] == []


@pytest.mark.parametrize("end", ENDS)
def test_the_table_of_cells_is_that_of_the_shipped_runs(end):
    lines = PAGE.read_text(encoding="utf-8").splitlines()
    rows = [*cell_rows(ENDS[end])]
    assert len(rows) == 8
    assert [line for line in rows if line not in lines] == []


def test_the_table_of_collapses_is_that_of_the_shipped_runs():
    lines = PAGE.read_text(encoding="utf-8").splitlines()
    assert [line for line in collapse_rows() if line not in lines] == []


def test_what_is_said_of_a_point_is_so():
    """Intervals within a point, and those that leave 0 out: what the words of the page rest on."""
    within, apart = set(), set()
    for (label, changes), by, end in itertools.product(effects(), MOVED, ENDS):
        values = contrast(ENDS[end], by, changes)
        low, high = stats.ttest_1samp(values, 0).confidence_interval(0.95)
        if by == "id" and label in MAIN and low >= -1 and high <= 1:
            within.add((label, end))
        if low > 0 or high < 0:
            apart.add((label, by, end))
    assert within == {
        ("FwdKL − Hellinger", 1),
        ("FwdKL − Hellinger", 0),
        ("K-FAC − AdamW", 0),
    }
    assert apart == {("(ratio 8 − ratio 0) at K-FAC − at AdamW", "id", 1)}


def test_drift_falls_with_the_ratio_in_every_cell():
    for study in ENDS.values():
        drift: dict[tuple, list] = {}
        for (pull, ratio, rule, _), path in paths(study).items():
            drift.setdefault((pull, rule, ratio), []).append(path[3, -1])
        for pull, rule in itertools.product(PULLS, RULES):
            assert np.mean(drift[pull, rule, 8.0]) < np.mean(drift[pull, rule, 0.0])


def test_the_primary_tests_are_corrected_over_the_six():
    lines = PAGE.read_text(encoding="utf-8").splitlines()
    assert [line for line in primary_rows() if line not in lines] == []


@pytest.mark.parametrize("study", ENDS.values())
def test_the_shipped_table_of_effects_is_recomputed(study):
    table = pd.read_csv(ROOT / "figures" / study / "table_factorial_effects.csv").set_index(
        "effect"
    )
    assert set(table.index) == {label for label, _ in effects()}
    for label, changes in effects():
        for by, key in (("id", "at_id_gain"), ("drift", "at_drift")):
            values = contrast(study, by, changes)
            assert int(table.loc[label, f"{key}.draws"]) == len(values)
            if len(values):
                assert table.loc[label, key] == pytest.approx(np.mean(values))
            if len(values) > 1:
                test = stats.ttest_1samp(values, 0)
                low, high = test.confidence_interval(0.95)
                assert table.loc[label, f"{key}.sd"] == pytest.approx((high - low) / 2)
                assert table.loc[label, f"{key}.p"] == pytest.approx(test.pvalue)


def test_runs_that_were_shipped_before_have_the_same_accuracies():
    def accuracies(study, variant):
        (file,) = (ROOT / "figures" / study / "source").glob("scores.csv*")
        rows = pd.read_csv(file).query("metric == 'avg@k' and draw < 3")
        of_run = rows[rows["variant"] == variant]
        return of_run.set_index(["draw", "benchmark"])["value"].sort_index()

    cell = "geosd-divergence_{}-drift_penalty_{}-rule_{}-learning_rate_3e-05-steps_{}"
    same = {
        "fwdkl-learning_rate_3e-05-steps_24": cell.format("fwdkl", "0.0", "adamw", 24),
        "fwdkl-learning_rate_3e-05-steps_200": cell.format("fwdkl", "0.0", "adamw", 200),
        "geosd-learning_rate_3e-05-steps_200": cell.format("hellinger", "1.0", "kfac", 200),
    }
    for before, now in same.items():
        expected = accuracies("miniature_stepsize", before)
        assert len(expected) >= 6
        pd.testing.assert_series_equal(accuracies(ENDS[1], now), expected)


def test_the_largest_mean_id_gains_of_each_divergence_are_those_of_the_shipped_runs():
    page = PAGE.read_text(encoding="utf-8")
    for pull, (name, _) in PULLS.items():
        most = [
            np.mean(
                [path[1] for cell, path in paths(ENDS[1]).items() if cell[:3] == at], axis=0
            ).max()
            for at in itertools.product([pull], (0.0, 8.0), RULES)
        ]
        assert f"{name} {min(most):.1f} to {max(most):.1f}" in page
