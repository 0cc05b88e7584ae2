"""Ridges over checkpoints are means over seeds of what the runs wrote."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from geosd.scores import alignment_table as alignment
from geosd.scores.tidy_columns import COLUMNS


def rows(seed, steps):
    return [
        ("m", "fwdkl", seed, step, ranking, rank, seed + step / 10 + rank / 100, 5)
        for step in steps
        for ranking in ("pi_0", "live")
        for rank in (1, 2)
    ]


def test_a_ridge_is_the_mean_over_seeds_at_each_rank():
    table = pd.DataFrame(rows(0, [0, 3]) + rows(1, [0, 3]), columns=list(COLUMNS["alignment"]))
    found = alignment.mass_by_step(table, "m", "fwdkl", "pi_0")
    assert found.index.tolist() == [0, 3] and found.columns.tolist() == [1, 2]
    assert found.to_numpy() == pytest.approx(np.array([[0.51, 0.52], [0.81, 0.82]]))


def test_seeds_with_unlike_checkpoints_are_not_averaged():
    table = pd.DataFrame(rows(0, [0, 3]) + rows(1, [0]), columns=list(COLUMNS["alignment"]))
    with pytest.raises(ValueError, match="(?s)fwdkl on m.*unlike checkpoints.*Hint:"):
        alignment.mass_by_step(table, "m", "fwdkl", "pi_0")
    with pytest.raises(ValueError, match="(?s)geosd on m.*no rows.*Hint:"):
        alignment.mass_by_step(table, "m", "geosd", "pi_0")
