"""The few numbers are means over seeds, of the largest k."""

from __future__ import annotations

import pandas as pd

from geosd.scores.score_table import score_table_by_variant
from geosd.scores.tidy import COLUMNS


def table(*rows) -> pd.DataFrame:
    return pd.DataFrame(rows, columns=list(COLUMNS["scores"]))


def test_each_number_is_the_mean_over_the_seeds_of_a_variant():
    scores = table(
        ("m", "geosd", 0, 0, "id", "ID", "avg@k", 16, 40.0),
        ("m", "geosd", 1, 0, "id", "ID", "avg@k", 16, 45.005),
        ("m", "geosd", 0, 0, "id", "ID", "pass@k", 1, 40.0),
        ("m", "geosd", 0, 0, "id", "ID", "pass@k", 16, 80.0),
        ("m", "geosd", 0, 0, "ood_avg", "OOD", "avg@k", 16, 10.0),
        ("m", "geosd", 0, 0, "far", "OOD", "avg@k", 16, 99.0),
        ("m", "pi_0", 0, 0, "id", "ID", "avg@k", 16, 30.0),
    )
    assert score_table_by_variant(scores) == {
        "m": {
            "geosd": {"ID avg@16": 42.5, "ID pass@16": 80.0, "OOD avg@16": 10.0},
            "pi_0": {"ID avg@16": 30.0},
        }
    }
