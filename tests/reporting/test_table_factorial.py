"""The factorial of GeoSD's parts: its cells, its effects, its figure, and what they need."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pandas as pd
import pytest
from made_up_tables import made_up_tables
from scipy import stats
from table_cells import cell

from geosd.config import ConfigError, load, resolve_study, settings
from geosd.reporting import figure_factorial, table_factorial, table_factorial_effects
from geosd.scores.factorial_effects import factorial_curvature_ratio
from geosd.scores.tidy import COLUMNS

SEEDS = 5
STOPS = (24, 48, 200)
LAMBDA = {"hellinger": (0.0, 1.0), "fwdkl": (0.0, 4.0)}
PARTS = {
    f"{pull}-{penalty}-{rule}-{steps}": {
        "divergence": pull,
        "drift_penalty": penalty,
        "rule": rule,
        "steps": steps,
    }
    for pull, penalties in LAMBDA.items()
    for penalty, rule, steps in itertools.product(penalties, ("kfac", "adamw"), STOPS)
}


@pytest.fixture(scope="module")
def tidy():
    """Scores and drift of made-up runs, which all reach 6 points and .10 radians."""
    draw, scores, drift = np.random.default_rng(3), [], []
    names = ("id", "ood_avg")
    for seed in range(SEEDS):
        base = dict(zip(names, draw.uniform(40, 60, 2), strict=True))
        for name in names:
            scores.append(("m", "pi_0", seed, seed, name, "", "avg@k", 16, base[name]))
        for run, part in PARTS.items():
            far = part["steps"] / 200
            gains = (draw.uniform(8, 12) * far, draw.uniform(-9, 0) * far)
            for name, gain in zip(names, gains, strict=True):
                row = ("m", run, seed, seed, name, "", "avg@k", 16, base[name] + gain)
                scores.append(row)
            drift.append(("m", run, seed, seed, "drift/pi_0", draw.uniform(0.15, 0.2) * far))
    return (
        pd.DataFrame(scores, columns=list(COLUMNS["scores"])),
        pd.DataFrame(drift, columns=list(COLUMNS["drift"])),
    )


def path(tidy, pull, penalty, rule, seed):
    """Columns of a run's path from π₀: ID gain, OOD gain, drift; by tidy rows alone."""
    scores, drift = tidy

    def score(run, name):
        rows = scores[(scores["variant"] == run) & (scores["benchmark"] == name)]
        return rows.loc[rows["seed"] == seed, "value"].item()

    points = [(0.0, 0.0, 0.0)]
    for steps in STOPS:
        run = f"{pull}-{penalty}-{rule}-{steps}"
        gains = [score(run, name) - score("pi_0", name) for name in ("id", "ood_avg")]
        moved = drift.loc[(drift["variant"] == run) & (drift["seed"] == seed), "value"].item()
        points.append((*gains, moved))
    return np.array(points).T


def at_six(tidy, pull, penalty, rule, seed):
    gained, ood, _ = path(tidy, pull, penalty, rule, seed)
    return np.interp(6.0, gained, ood)  # ID gains of this table never turn back


def test_a_cell_is_the_mean_of_interpolated_runs(tidy):
    table = table_factorial.build(*tidy, ["m"], PARTS)
    assert [row.label for row in table.rows] == [
        f"{pull}, {ratio}, {rule}"
        for pull in ("Hellinger", "FwdKL")
        for ratio in (0, 8)
        for rule in ("K-FAC", "AdamW")
    ]
    values = [at_six(tidy, "fwdkl", 4.0, "kfac", seed) for seed in range(SEEDS)]
    low, high = stats.ttest_1samp(values, 0).confidence_interval(0.95)
    shown = cell(table, "FwdKL, 8, K-FAC", "at_id_gain")
    assert (shown.value, shown.sd) == pytest.approx((np.mean(values), (high - low) / 2))
    assert cell(table, "FwdKL, 8, K-FAC", "at_id_gain.n").value == "5 of 5"
    values = []
    for seed in range(SEEDS):
        _, ood, moved = path(tidy, "hellinger", 0.0, "adamw", seed)
        values.append(np.interp(0.1, moved, ood))
    assert cell(table, "Hellinger, 0, AdamW", "at_drift").value == pytest.approx(np.mean(values))
    last = [path(tidy, "hellinger", 0.0, "adamw", seed)[0, -1] for seed in range(SEEDS)]
    assert cell(table, "Hellinger, 0, AdamW", "id").value == pytest.approx(np.mean(last))


def test_a_cell_says_how_many_runs_got_so_far_and_how_many_collapse(tidy):
    scores, drift = (table.copy() for table in tidy)
    run = scores["variant"].str.startswith("fwdkl-4.0-kfac") & (scores["seed"] == 0)
    scores.loc[run & (scores["benchmark"] == "id"), "value"] = 1.0
    table = table_factorial.build(scores, drift, ["m"], PARTS)
    assert cell(table, "FwdKL, 8, K-FAC", "at_id_gain.n").value == "4 of 5"
    assert cell(table, "FwdKL, 8, K-FAC", "at_drift.n").value == "5 of 5"
    assert cell(table, "FwdKL, 8, K-FAC", "collapsed").value == "1 of 5"
    assert cell(table, "FwdKL, 8, AdamW", "collapsed").value == "0 of 5"


@pytest.mark.slow
def test_effects_are_differences_within_a_draw(tidy):
    table = table_factorial_effects.build(*tidy, ["m"], PARTS)
    pairs = [
        np.mean(
            [
                at_six(tidy, "fwdkl", LAMBDA["fwdkl"][strong], rule, seed)
                - at_six(tidy, "hellinger", LAMBDA["hellinger"][strong], rule, seed)
                for strong, rule in itertools.product((0, 1), ("kfac", "adamw"))
            ]
        )
        for seed in range(SEEDS)
    ]
    test = stats.ttest_1samp(pairs, 0)
    low, high = test.confidence_interval(0.95)
    shown = cell(table, "FwdKL − Hellinger", "at_id_gain")
    assert (shown.value, shown.sd) == pytest.approx((np.mean(pairs), (high - low) / 2))
    p = cell(table, "FwdKL − Hellinger", "at_id_gain.p").value
    assert p == pytest.approx(test.pvalue)
    between = [
        np.mean(
            [
                sign * at_six(tidy, pull, LAMBDA[pull][strong], rule, seed)
                for pull in LAMBDA
                for strong, rule, sign in (
                    (1, "kfac", 2),
                    (0, "kfac", -2),
                    (1, "adamw", -2),
                    (0, "adamw", 2),
                )
            ]
        )
        * 2
        for seed in range(SEEDS)
    ]
    label = "(ratio 8 − ratio 0) at K-FAC − at AdamW"
    assert cell(table, label, "at_id_gain").value == pytest.approx(np.mean(between))
    assert cell(table, label, "at_id_gain.draws").value == str(SEEDS)


def test_an_effect_that_no_draw_has_is_empty(tidy):
    scores, drift = (table.copy() for table in tidy)
    drift["value"] *= 0.1
    table = table_factorial_effects.build(scores, drift, ["m"], PARTS)
    for label in ("FwdKL − Hellinger", "ratio 8 − ratio 0"):
        assert cell(table, label, "at_drift").text == "–"
        assert cell(table, label, "at_drift.draws").value == "0"


def test_the_figure_has_a_line_for_each_cell_from_the_origin(tidy):
    figure = figure_factorial.plot(*tidy, ["m"], PARTS)
    assert len(figure.axes) == 4
    lines = [line for line in figure.axes[0].lines if len(line.get_xdata()) == len(STOPS) + 1]
    assert len(lines) == 4
    x, y = lines[0].get_data()
    whole = [path(tidy, "hellinger", 0.0, "kfac", seed) for seed in range(SEEDS)]
    assert x == pytest.approx(np.mean(whole, axis=0)[0])
    assert y == pytest.approx(np.mean(whole, axis=0)[1])


@pytest.mark.slow
def test_the_whole_study_crosses_all_parts_at_equal_curvature(root):
    study = resolve_study(load(root / "params.yaml"), "miniature_factorial_100")
    parts = settings("table_factorial", study)["parts"]
    cells = {
        (
            part["divergence"],
            factorial_curvature_ratio(part["divergence"], part["drift_penalty"]),
            part["rule"],
            part["steps"],
        )
        for part in parts.values()
    }
    names = ("hellinger", "jsd", "fwdkl", "revkl")
    assert cells == {
        *itertools.product(names, (0.0, 8.0, 32.0), ("kfac", "adamw"), (24, 48, 96, 200))
    }
    assert len(parts) == len(cells)
    effects = table_factorial_effects.build(**_made_up(study), models=["mini-qwen3"], parts=parts)
    assert len(effects.rows) == 3 + 2 + 1 + 3 * 2 + 2
    assert all(not math.isnan(row.cells[0].value or 0) for row in effects.rows)


def _made_up(study):
    tables = made_up_tables(study)
    return {name: tables[name] for name in ("scores", "drift")}


@pytest.mark.parametrize(
    "grid",
    [
        "{geosd: {objective.divergence: [hellinger, jsd], optimiser.rule: [kfac, adamw]}}",
        "{geosd: {objective.drift_penalty: [0, 1], optimiser.rule: [kfac, adamw]}}",
        "{fwdkl: {learning_rate: [1.0e-5, 3.0e-5]}}",
    ],
)
def test_a_study_that_does_not_cross_the_parts_is_refused(root, tmp_path, monkeypatch, grid):
    for name in ("selected", "base_models"):
        (tmp_path / name).symlink_to(root / name)
    monkeypatch.chdir(tmp_path)
    added = f"""
  made_up:
    extends: miniature_factorial_core_100
    about: A study of this test.
    kind: rates
    grid: {grid}
"""
    params = (root / "params.yaml").read_text().rstrip("\n") + "\n" + added
    (tmp_path / "params.yaml").write_text(params)
    with pytest.raises(ConfigError, match="compares GeoSD's divergences.*give the study"):
        load("params.yaml")
