"""The best candidate of each variant is marked against its own, and the selected rate is named."""

from __future__ import annotations

import pandas as pd
import pytest

from geosd.reporting.table_selection import build
from geosd.scores.tidy import COLUMNS

CANDIDATES = {
    "fwdkl-learning_rate_1e-06": "fwdkl",
    "fwdkl-learning_rate_1e-05": "fwdkl",
    "geosd-learning_rate_0.0001": "geosd",
    "geosd-drift_penalty_3.0": "geosd",
}
RATES = {
    "fwdkl": {"fwdkl-learning_rate_1e-06": 1e-6, "fwdkl-learning_rate_1e-05": 1e-5},
    "geosd": {"geosd-learning_rate_0.0001": 1e-4},
}
LABELS = [
    "FwdKL learning_rate_1e-06",
    "FwdKL learning_rate_1e-05",
    "GeoSD learning_rate_0.0001",
    "GeoSD drift_penalty_3.0",
]


def scores(*values, models=("m",), base=0.0) -> pd.DataFrame:
    """avg@8 of each candidate by seed, and of pi_0: with 0 no run collapses."""
    pi_0 = [base] * len(values[0])
    rows = [
        (model, name, seed, 0, "select_validation", "ID", "avg@k", 8, value)
        for model in models
        for name, by_seed in zip(["pi_0", *CANDIDATES], [pi_0, *values], strict=True)
        for seed, value in enumerate(by_seed)
    ]
    return pd.DataFrame(rows, columns=list(COLUMNS["scores"]))


def cells(table) -> pd.DataFrame:
    keys = [column.key for column in table.columns]
    return pd.DataFrame([row.cells for row in table.rows], [r.label for r in table.rows], keys)


def test_each_variant_has_its_own_best():
    found = cells(build(scores([40.0], [50.0], [30.0], [20.0]), ["m"], CANDIDATES, RATES))
    ranks = found["m.select_validation"].map(lambda cell: cell.rank)
    assert list(ranks[LABELS]) == ["second", "best", "best", "second"]


def test_values_are_means_over_seeds_and_differences_have_their_standard_error():
    table = scores([40, 41, 45], [50, 50, 50], [30, 30, 30], [20, 22, 24])
    found = cells(build(table, ["m"], CANDIDATES, RATES))
    assert [cell.value for cell in found["m.select_validation"]] == [42, 50, 30, 22]
    behind = found.loc[LABELS[0], "m.behind"]
    # 10, 9, 5: mean 8, sd sqrt(7), over sqrt(3) its error.
    assert (behind.value, behind.sd) == pytest.approx((8, (7 / 3) ** 0.5))
    assert found.loc[LABELS[1], "m.behind"].value is None, "the best is behind nothing"
    assert found.loc[LABELS[3], "m.behind"].value == 8


def test_the_selected_rate_is_within_one_standard_error_on_each_model():
    of_a = scores([51, 48, 48], [50, 50, 50], [30, 30, 30], [90, 90, 90], models=("a",))
    of_b = scores([40, 40, 40], [50, 50, 50], [30, 30, 30], [90, 90, 90], models=("b",))
    found = cells(build(pd.concat([of_a, of_b]), ["a", "b"], CANDIDATES, RATES))
    assert [cell.text for cell in found["a.selected"]] == ["selected", "", "selected", ""]
    assert [cell.text for cell in found["b.selected"]] == ["", "selected", "selected", ""]


def test_a_grid_without_rates_selects_nothing():
    table = build(scores([40], [50], [30], [20]), ["m"], CANDIDATES, {})
    assert [column.key for column in table.columns] == ["m.select_validation", "m.behind"]
    assert "elected" not in table.note
    with_rates = build(scores([40], [50], [30], [20]), ["m"], CANDIDATES, RATES)
    assert "Selected: " in with_rates.note


def test_a_rate_at_a_collapse_or_near_it_says_so_on_every_model():
    firm = scores([52, 52], [60, 60], [55, 55], [0, 0], models=("a",), base=50.0)
    frail = scores([52, 52], [60, 39], [55, 55], [0, 0], models=("b",), base=50.0)
    table = build(pd.concat([firm, frail]), ["a", "b"], CANDIDATES, RATES)
    found = cells(table)
    for model in "ab":
        words = [cell.text for cell in found[f"{model}.selected"]]
        assert words == ["selected", "collapses", "selected", ""]
    near = {"fwdkl": {**RATES["fwdkl"], "fwdkl-learning_rate_1e-06": 3e-6}}
    found = cells(build(pd.concat([firm, frail]), ["a", "b"], CANDIDATES, near))
    assert [c.text for c in found["b.selected"]] == ["near a collapse", "collapses", "", ""]
