"""The best candidate of each variant is marked, and only against its own."""

from __future__ import annotations

import pandas as pd

from geosd.reporting.table_selection import build

CANDIDATES = {
    "fwdkl-learning_rate_1e-06": "fwdkl",
    "fwdkl-learning_rate_1e-05": "fwdkl",
    "geosd-learning_rate_0.0001": "geosd",
}


def scores(values):
    rows = [
        ("m", name, seed, "select_validation", "ID", "avg@k", 8, value + seed)
        for name, value in zip(CANDIDATES, values, strict=True)
        for seed in (0, 1)
    ]
    names = ["model", "variant", "seed", "benchmark", "split", "metric", "k", "value"]
    return pd.DataFrame(rows, columns=names)


def test_each_variant_has_its_own_best():
    table = build(scores([40.0, 50.0, 30.0]), ["m"], CANDIDATES)
    ranks = {row.label: row.cells[0].rank for row in table.rows}
    assert ranks == {
        "FwdKL learning_rate_1e-06": "second",
        "FwdKL learning_rate_1e-05": "best",
        "GeoSD learning_rate_0.0001": "best",
    }


def test_values_are_means_over_seeds():
    table = build(scores([40.0, 50.0, 30.0]), ["m"], CANDIDATES)
    assert [row.cells[0].value for row in table.rows] == [40.5, 50.5, 30.5]
