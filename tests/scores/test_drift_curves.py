"""Drift over steps and ridges over checkpoints are means over seeds of what the runs wrote."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from geosd.scores import alignment_table as alignment
from geosd.scores.drift_curves import collect, read
from geosd.scores.score_table import Run


@pytest.fixture
def logs(tmp_path):
    """Two runs of three steps; the second one did not measure its step 1."""
    files = {}
    for seed, values in enumerate(["0.0,0.2,0.4", "0.0,,0.8"]):
        path = tmp_path / f"{seed}.csv"
        steps = "".join(f"{step},{v}\n" for step, v in enumerate(values.split(",")))
        path.write_text("step,drift/pi_0\n" + steps)
        files[Run("m", "geosd", seed)] = path
    return files


def test_a_step_that_was_not_measured_has_no_row(logs, tmp_path):
    collect(logs).to_csv(tmp_path / "drift.csv", index=False)
    table = read(tmp_path / "drift.csv")
    assert table["step"].tolist() == [0, 1, 2, 0, 2]
    assert table["value"].tolist() == [0.0, 0.2, 0.4, 0.0, 0.8]


def test_a_log_without_the_drift_is_named(tmp_path):
    (tmp_path / "steps.csv").write_text("step,loss\n0,1\n")
    with pytest.raises(ValueError, match="(?s)steps.csv: missing column drift/pi_0.*Hint:"):
        collect({Run("m", "sft", 0): tmp_path / "steps.csv"})
    with pytest.raises(FileNotFoundError, match="(?s)absent.csv: the step log is missing.*Hint:"):
        collect({Run("m", "sft", 0): tmp_path / "absent.csv"})


def rows(seed, steps):
    return [
        ("m", "fwdkl", seed, step, ranking, rank, seed + step / 10 + rank / 100, 5)
        for step in steps
        for ranking in ("pi_0", "live")
        for rank in (1, 2)
    ]


def test_a_ridge_is_the_mean_over_seeds_at_each_rank():
    table = pd.DataFrame(rows(0, [0, 3]) + rows(1, [0, 3]), columns=list(alignment.COLUMNS))
    found = alignment.mass_by_step(table, "m", "fwdkl", "pi_0")
    assert found.index.tolist() == [0, 3] and found.columns.tolist() == [1, 2]
    assert found.to_numpy() == pytest.approx(np.array([[0.51, 0.52], [0.81, 0.82]]))


def test_seeds_with_unlike_checkpoints_are_not_averaged():
    table = pd.DataFrame(rows(0, [0, 3]) + rows(1, [0]), columns=list(alignment.COLUMNS))
    with pytest.raises(ValueError, match="(?s)fwdkl on m.*unlike checkpoints.*Hint:"):
        alignment.mass_by_step(table, "m", "fwdkl", "pi_0")
    with pytest.raises(ValueError, match="(?s)geosd on m.*no rows.*Hint:"):
        alignment.mass_by_step(table, "m", "geosd", "pi_0")
