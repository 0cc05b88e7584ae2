"""Another teacher is compared with the live one at the same learning rate, seed by seed."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from table_cells import cell

from geosd.config import load, resolve_study, settings
from geosd.reporting.table_teacher import build
from geosd.scores.tidy import COLUMNS

SEEDS = 3
POINTS = [
    {"run": f"{v}-{rate}-{t}", "variant": v, "learning_rate": rate, "teacher": t}
    for v, teachers in (("geosd", ("live", "fixed")), ("fwdkl", ("live", "fixed", "average")))
    for rate in (1e-4, 1e-5)
    for t in teachers
]


def made_up_tables():
    draw, scores, drift = np.random.default_rng(3), [], []
    for run in ["pi_0", *(point["run"] for point in POINTS)]:
        for seed in range(SEEDS):
            for benchmark in ("id", "ood_avg"):
                value = draw.uniform(20, 80)
                scores.append(("m", run, seed, 0, benchmark, "", "avg@k", 16, value))
            if run != "pi_0":
                drift.append(("m", run, seed, 0, "drift/pi_0", draw.uniform(0, 0.3)))
    return (
        pd.DataFrame(scores, columns=list(COLUMNS["scores"])),
        pd.DataFrame(drift, columns=list(COLUMNS["drift"])),
    )


@pytest.fixture(scope="module")
def tidy():
    return made_up_tables()


def values(scores, run, benchmark):
    of_run = scores[(scores["variant"] == run) & (scores["benchmark"] == benchmark)]
    return of_run.sort_values("seed")["value"].to_numpy()


def test_rows_are_methods_by_learning_rate_after_the_base_model(tidy):
    table = build(*tidy, ["m"], {"m": POINTS})
    labels = [row.label for row in table.rows]
    assert labels == ["π₀", "FwdKL, 1e-5", "FwdKL, 1e-4", "GeoSD, 1e-5", "GeoSD, 1e-4"]
    groups = dict.fromkeys(column.group for column in table.columns)
    assert list(groups) == ["live teacher", "teacher fixed at π₀", "teacher a moving average"]


def test_the_live_teacher_has_means_and_the_others_paired_changes(tidy):
    scores, drift = tidy
    table = build(scores, drift, ["m"], {"m": POINTS})
    for rate, label in ((1e-5, "FwdKL, 1e-5"), (1e-4, "FwdKL, 1e-4")):
        live = values(scores, f"fwdkl-{rate}-live", "ood_avg")
        shown = cell(table, label, "m.live.ood_avg")
        assert (shown.value, shown.sd) == pytest.approx((live.mean(), live.std(ddof=1)))
        pairs = values(scores, f"fwdkl-{rate}-average", "ood_avg") - live
        low, high = stats.ttest_1samp(pairs, 0).confidence_interval(0.95)
        shown = cell(table, label, "m.average.ood_avg.delta")
        assert (shown.value, shown.sd) == pytest.approx((pairs.mean(), (high - low) / 2))
        moved = drift[drift["variant"] == f"fwdkl-{rate}-live"]["value"].mean()
        assert cell(table, label, "m.live.drift/pi_0").value == pytest.approx(moved)
    base = values(scores, "pi_0", "id").mean()
    assert cell(table, "π₀", "m.live.id").value == pytest.approx(base)
    assert cell(table, "GeoSD, 1e-5", "m.average.id.delta").text == "–"  # it has none


def test_the_study_of_teachers_has_every_teacher_at_every_rate_and_trains_few_anew(root):
    params = load(root / "params.yaml")
    study, swept = (
        resolve_study(params, "miniature_teacher"),
        resolve_study(params, "miniature_stepsize"),
    )
    points = settings("table_teacher", study)["points"]["mini-qwen3"]
    plane = {(p["variant"], p["learning_rate"], p["teacher"]) for p in points}
    assert len(plane) == len(points) == 2 * 4 * 4
    for variant in ("fwdkl", "geosd"):
        rates = {rate for name, rate, _ in plane if name == variant}
        teachers = ("live", "fixed", "delayed", "average")
        assert {where for where in plane if where[0] == variant} == {
            (variant, rate, teacher) for rate in rates for teacher in teachers
        }
    trained = [settings("train", swept, "mini-qwen3", name) for name in swept.trained]
    live = [point["run"] for point in points if point["teacher"] == "live"]
    assert all(settings("train", study, "mini-qwen3", run) in trained for run in live)
