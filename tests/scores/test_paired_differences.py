"""The table of paired differences against numbers reckoned by hand and by scipy."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from geosd.claims.claim import Claim
from geosd.claims.evidence import Evidence
from geosd.claims.finding import ALL_MODELS
from geosd.claims.judging import judge_claims
from geosd.claims.metrics import accuracy_metric
from geosd.reporting.table_paired_differences import ALL, build


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


def intervals(scores, models=("a", "b"), methods=("pi_0", "fwdkl", "geosd")):
    """Each cell of the table by column: mean difference and the ends of its interval."""
    table = build(scores, models, methods)
    (row,) = table.rows
    return {
        column.key: (cell.value, cell.value - cell.sd, cell.value + cell.sd)
        for column, cell in zip(table.columns, row.cells, strict=True)
    }


def test_differences_are_paired_by_run_and_their_unit_is_the_draw():
    rng = np.random.default_rng(0)
    base = {"pi_0": np.zeros(8), "fwdkl": rng.normal(50, 9, 8), "geosd": rng.normal(55, 9, 8)}
    values = {(m, v): row + 3 * i for i, m in enumerate("ab") for v, row in base.items()}
    values["b", "geosd"] = values["b", "geosd"] + rng.normal(0, 2, 8)
    found = intervals(scores(values))
    of_draws = {m: (values[m, "geosd"] - values[m, "fwdkl"]).reshape(4, 2).mean(1) for m in "ab"}
    for model, each in of_draws.items():
        interval = stats.ttest_1samp(each, 0).confidence_interval()
        assert found[f"{model} ID"] == pytest.approx([each.mean(), *interval])
        assert found[f"{model} OOD"] == pytest.approx(found[f"{model} ID"]), "paired"
    every = np.concatenate([*of_draws.values()])  # each base model counts alike, as in the ledger
    interval = stats.ttest_1samp(every, 0).confidence_interval()
    assert found[f"{ALL} ID"] == pytest.approx([every.mean(), *interval])


def test_the_ledger_has_the_same_interval():
    rng = np.random.default_rng(1)
    values = {
        (m, v): rng.normal(50, 9, 8) + 7 * i
        for i, m in enumerate("ab")
        for v in ("pi_0", "fwdkl", "geosd")
    }
    rows = scores(values)
    found = intervals(rows)
    claim = Claim(
        "x", "x", "x", "x", "main", holds=[accuracy_metric("geosd") > accuracy_metric("fwdkl")]
    )
    judged = {f.model: f for f in judge_claims([claim], Evidence(rows))}
    for column, model in ((f"{ALL} OOD", ALL_MODELS), ("a OOD", "a"), ("b OOD", "b")):
        of = judged[model]
        assert found[column] == pytest.approx((of.effect, of.low, of.high))


def test_a_small_corrected_p_is_bold():
    """Of three methods one lies far above FwdKL: p by scipy, times three, decides."""
    rng = np.random.default_rng(2)
    shifts = {"fwdkl": 0, "geosd": 30, "jsd": 0.5, "grpo": 0}
    values = {("a", v): rng.normal(40 + s, 3, 8) for v, s in shifts.items()}
    table = build(scores(values), ["a"], [*shifts])
    assert [column.key for column in table.columns] == ["a ID", "a OOD"]
    for row in table.rows:
        name = {"GeoSD": "geosd", "JSD": "jsd", "GRPO": "grpo"}[row.label]
        each = (values["a", name] - values["a", "fwdkl"]).reshape(4, 2).mean(1)
        p = stats.ttest_1samp(each, 0).pvalue
        assert (row.cells[0].rank == "best") == (3 * p < 0.05) == (name == "geosd")
