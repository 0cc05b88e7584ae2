"""Another reading is compared with the one that is used, seed by seed."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from geosd.reporting.table_readings import build
from geosd.scores.tidy import COLUMNS

CHANGES = {
    "geosd-teacher_fixed": {"teacher": "fixed"},
    "geosd-per_token_False": {"per_token": False},
    "geosd-mode_soft_or-every_5": {"mode": "soft_or", "every": 5},
}
ID = {
    "geosd": [50, 60, 70],
    "geosd-teacher_fixed": [51, 62, 70],
    "geosd-per_token_False": [40] * 3,
    "geosd-mode_soft_or-every_5": [1, 2, 3],
}


def table(methods=("pi_0", "geosd")):
    scores = [
        ("m", name, seed, 0, benchmark, "", "avg@k", 16, value)
        for name, runs in ID.items()
        for seed, value in enumerate(runs)
        for benchmark in ("id", "ood_avg")
    ]
    drift = [("m", name, 0, 0, "drift/pi_0", 0.25) for name in ID]
    return build(
        pd.DataFrame(scores, columns=list(COLUMNS["scores"])),
        pd.DataFrame(drift, columns=list(COLUMNS["drift"])),
        ["m"],
        list(methods),
        {name: "geosd" for name in CHANGES},
        CHANGES,
    )


def test_readings_stand_under_their_method_by_what_they_change():
    assert [row.label for row in table().rows] == [
        "GeoSD",
        "  teacher: fixed",
        "  per token: false",
        "  mode: soft or, every: 5",
    ]


def test_the_change_is_the_mean_of_pairs_with_students_interval():
    fixed = table().rows[1].cells[1]
    pairs = np.subtract(ID["geosd-teacher_fixed"], ID["geosd"])
    low, high = stats.ttest_1samp(pairs, 0).confidence_interval(0.95)
    assert (fixed.value, fixed.sd) == pytest.approx((1.0, (high - low) / 2))


def test_the_reading_that_is_used_has_no_change_and_one_run_no_interval():
    rows = table().rows
    assert rows[0].cells[1].text == "–" and rows[1].cells[5].spread == ""
