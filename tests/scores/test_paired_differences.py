"""The table of paired differences against numbers reckoned by hand and by scipy."""

import re
import runpy
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from geosd.claims.claim import Claim
from geosd.claims.evidence import Evidence
from geosd.claims.finding import ALL_MODELS
from geosd.claims.judging import judge_claims
from geosd.claims.metrics import accuracy

PROGRAM = Path(__file__).parents[2] / "analysis/paired_differences.py"
difference_table = runpy.run_path(str(PROGRAM))["difference_table"]


def scores(values):
    """Rows of avg@16; `values` has (model, variant) -> accuracy by seed; two seeds a draw."""
    return pd.DataFrame(
        [
            (model, variant, seed, seed // 2, benchmark, split, "avg@k", 16, value + shift)
            for (model, variant), row in values.items()
            for seed, value in enumerate(row)
            for benchmark, split, shift in (("id", "ID", 0.0), ("ood_avg", "OOD", 10.0 * seed))
        ],
        columns=["model", "variant", "seed", "draw", "benchmark", "split", "metric", "k", "value"],
    )


def numbers(cell):
    return [float(number) for number in re.findall(r"[-+]\d+\.\d", cell)]


def test_differences_are_paired_by_run_and_their_unit_is_the_draw():
    rng = np.random.default_rng(0)
    base = {"pi_0": np.zeros(8), "fwdkl": rng.normal(50, 9, 8), "geosd": rng.normal(55, 9, 8)}
    values = {(m, v): row + 3 * i for i, m in enumerate("ab") for v, row in base.items()}
    values["b", "geosd"] = values["b", "geosd"] + rng.normal(0, 2, 8)
    table = difference_table(scores(values), "fwdkl").set_index("method")
    of_draws = {m: (values[m, "geosd"] - values[m, "fwdkl"]).reshape(4, 2).mean(1) for m in "ab"}
    for model, each in of_draws.items():
        interval = stats.ttest_1samp(each, 0).confidence_interval()
        expected = pytest.approx([each.mean(), *interval], abs=0.051)
        assert numbers(table.loc["geosd", f"{model} ID"]) == expected
        assert table.loc["geosd", f"{model} OOD"] == table.loc["geosd", f"{model} ID"], "paired"
    every = np.concatenate([*of_draws.values()])  # each base model counts alike, as in the ledger
    interval = stats.ttest_1samp(every, 0).confidence_interval()
    expected = pytest.approx([every.mean(), *interval], abs=0.051)
    assert numbers(table.loc["geosd", "all ID"]) == expected


def test_the_ledger_has_the_same_interval():
    rng = np.random.default_rng(1)
    values = {
        (m, v): rng.normal(50, 9, 8) + 7 * i
        for i, m in enumerate("ab")
        for v in ("pi_0", "fwdkl", "geosd")
    }
    rows = scores(values)
    table = difference_table(rows, "fwdkl").set_index("method")
    claim = Claim("x", "x", "x", "x", "main", holds=[accuracy("geosd") > accuracy("fwdkl")])
    found = {f.model: f for f in judge_claims([claim], Evidence(rows))}
    for column, model in (("all OOD", ALL_MODELS), ("a OOD", "a"), ("b OOD", "b")):
        of = found[model]
        expected = f"{of.effect:+.1f} [{of.low:+.1f}, {of.high:+.1f}]"
        assert table.loc["geosd", column].rstrip("*") == expected


def test_a_reference_without_scores_is_refused():
    with pytest.raises(ValueError, match=r"(?s)no scores of 'jsd'.*Hint: there are fwdkl, pi_0"):
        difference_table(scores({("a", "pi_0"): [1.0], ("a", "fwdkl"): [2.0]}), "jsd")
