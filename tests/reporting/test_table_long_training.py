"""The table and the figure of long trainings, against runs whose path is known by a formula."""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
import pytest
from made_up_tables import made_up_tables
from scipy import stats
from table_cells import cell

from geosd.config import ConfigError, load, resolve_study, settings
from geosd.reporting import figure_long_training, table_long_training
from geosd.scores.tidy import COLUMNS

SEEDS = 4
STOPS = (100, 500, 1000)
DIVERGENCES = ("hellinger", "fwdkl")
REFRESHES = (20, 1001)
RUNS = {
    f"{divergence}-{refresh}-{steps}": {
        "divergence": divergence,
        "anchor_every": refresh,
        "steps": steps,
    }
    for divergence, refresh, steps in itertools.product(DIVERGENCES, REFRESHES, STOPS)
}


def drift_of(seed, refresh, steps):
    """Made-up drift in radians: a square root of the steps, smaller without a refresh."""
    return (0.01 if refresh == 20 else 0.002) * (1 + seed / 10) * np.sqrt(steps)


def ood_of(seed, refresh, steps):
    """Made-up OOD gain in points: a straight line down."""
    return -steps * (1 + seed) / 40 if refresh == 20 else -steps / 1000


@pytest.fixture(scope="module")
def tidy():
    scores, drift = [], []
    for seed in range(SEEDS):
        for name in ("id", "ood_avg"):
            scores.append(("m", "pi_0", seed, seed, name, "", "avg@k", 16, 50.0))
        for run, of in RUNS.items():
            gains = {
                "id": 5.0 if of["steps"] == 500 else 2.0,
                "ood_avg": ood_of(seed, of["anchor_every"], of["steps"]),
            }
            for name, gain in gains.items():
                scores.append(("m", run, seed, seed, name, "", "avg@k", 16, 50.0 + gain))
            moved = drift_of(seed, of["anchor_every"], of["steps"])
            drift.append(("m", run, seed, seed, "drift/pi_0", moved))
    return (
        pd.DataFrame(scores, columns=list(COLUMNS["scores"])),
        pd.DataFrame(drift, columns=list(COLUMNS["drift"])),
    )


def test_a_row_for_each_divergence_and_refresh(tidy):
    table = table_long_training.build(*tidy, ["m"], RUNS)
    assert [row.label for row in table.rows] == [
        "Hellinger, every 20",
        "Hellinger, never",
        "FwdKL, every 20",
        "FwdKL, never",
    ]


def test_cells_are_means_over_draws_with_students_interval(tidy):
    table = table_long_training.build(*tidy, ["m"], RUNS)
    label = "Hellinger, every 20"

    def expected(value):
        values = [value(seed) for seed in range(SEEDS)]
        low, high = stats.ttest_1samp(values, 0).confidence_interval(0.95)
        return pytest.approx((np.mean(values), (high - low) / 2))

    def shown(key):
        found = cell(table, label, key)
        return found.value, found.sd

    assert shown("drift_1000") == expected(lambda seed: drift_of(seed, 20, 1000))
    windows = (500 - 100) / 20
    assert shown("window_500") == expected(
        lambda seed: (drift_of(seed, 20, 500) - drift_of(seed, 20, 100)) / windows
    )
    assert shown("step_of_fall") == expected(lambda seed: 400 / (1 + seed))
    assert cell(table, label, "late_growth").value == pytest.approx(100 * (1 - np.sqrt(0.5)))
    assert cell(table, label, "best_id").value == pytest.approx(5.0)
    assert cell(table, label, "id").value == pytest.approx(2.0)
    assert shown("ood_avg") == expected(lambda seed: -25.0 * (1 + seed))


def test_without_a_refresh_there_is_no_window_and_without_a_fall_no_step(tidy):
    table = table_long_training.build(*tidy, ["m"], RUNS)
    assert cell(table, "FwdKL, never", "window_1000").text == "–"
    assert cell(table, "FwdKL, never", "step_of_fall").text == "–"
    assert cell(table, "FwdKL, never", "step_of_fall.n").value == "0 of 4"
    assert cell(table, "FwdKL, every 20", "step_of_fall.n").value == "4 of 4"


def test_the_figure_has_a_line_for_each_divergence_in_each_panel(tidy):
    figure = figure_long_training.plot(*tidy, ["m"], RUNS)
    assert len(figure.axes) == 3 * len(REFRESHES)
    paths = [line for line in figure.axes[0].lines if len(line.get_xdata()) == len(STOPS) + 1]
    assert len(paths) == len(DIVERGENCES)
    x, y = paths[0].get_data()
    assert list(x) == [0, *STOPS]
    means = [np.mean([drift_of(seed, 20, steps) for seed in range(SEEDS)]) for steps in STOPS]
    assert y == pytest.approx([0, *means])


@pytest.mark.slow
def test_the_study_crosses_divergences_and_refreshes(root):
    study = resolve_study(load(root / "params.yaml"), "miniature_long_100")
    runs = settings("table_long_training", study)["long_runs"]
    cells = {(run["divergence"], run["anchor_every"]) for run in runs.values()}
    assert cells == {*itertools.product(("hellinger", "jsd", "fwdkl"), (20, 100, 2001))}
    tables = made_up_tables(study)
    table = table_long_training.build(tables["scores"], tables["drift"], ["mini-qwen3"], runs)
    assert len(table.rows) == 9


def test_a_study_without_a_stop_at_half_is_refused(root, tmp_path, monkeypatch):
    for name in ("selected", "base_models"):
        (tmp_path / name).symlink_to(root / name)
    monkeypatch.chdir(tmp_path)
    added = """
  made_up:
    extends: miniature_long_100
    about: A study of this test.
    kind: rates
    grid: {geosd: {anchor_every: [20, 100], steps: [20, 200]}}
"""
    params = (root / "params.yaml").read_text().rstrip("\n") + "\n" + added
    (tmp_path / "params.yaml").write_text(params)
    with pytest.raises(ConfigError, match="long trainings of GeoSD.*give the study"):
        load("params.yaml")
