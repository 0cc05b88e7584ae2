"""The table of ablations: numbers by hand, and the paper's beside them."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from geosd.reporting import table_ablations
from geosd.reporting.latex_tables import to_latex
from geosd.reporting.tables import table_to_markdown
from geosd.scores.score_table import scores_by_seed
from geosd.scores.tidy import COLUMNS

VARIANTS = {"geosd": 60, "geosd_jsd": 56, "geosd_no_prox": 54, "geosd_adamw": 57, "fwdkl": 44}
METHODS = ["pi_0", *VARIANTS]


def made_up_tables(models=("mini-qwen3",), seeds=3):
    draw, rows, moved = np.random.default_rng(8), [], []
    for model in models:
        for variant, centre in VARIANTS.items():
            for seed in range(seeds):
                for benchmark, split in (("id", "ID"), ("ood_avg", "OOD")):
                    head = (model, variant, seed, 0, benchmark, split)
                    rows.append((*head, "avg@k", 16, centre + draw.normal()))
                    rows += [(*head, "pass@k", k, centre + k + draw.normal()) for k in (1, 16)]
                moved.append((model, variant, seed, 0, "drift/pi_0", (80 - centre) / 100))
    tables = pd.DataFrame(rows, columns=list(COLUMNS["scores"])), pd.DataFrame(moved)
    return tables[0], tables[1].set_axis(list(COLUMNS["drift"]), axis=1)


def column(table, key):
    at = [c.key for c in table.columns].index(key)
    return {row.label: row.cells[at] for row in table.rows}


def test_the_numbers_are_those_of_the_runs_and_the_change_is_from_the_full_method():
    scores, drift = made_up_tables()
    table = table_ablations.build(scores, drift, ["mini-qwen3"], METHODS)
    assert [row.label for row in table.rows] == [
        "GeoSD", "GeoSD, Hellinger → JSD", "GeoSD, λ = 0", "GeoSD, AdamW"
    ]  # fmt: skip
    jsd, full = (scores_by_seed(scores, "mini-qwen3", v, "ood_avg") for v in ("geosd_jsd", "geosd"))
    change = column(table, "mini-qwen3.delta_ood")
    assert change["GeoSD, Hellinger → JSD"].value == pytest.approx(jsd.mean() - full.mean())
    assert change["GeoSD"].number is None
    passed = scores_by_seed(scores, "mini-qwen3", "geosd", "ood_avg", "pass@k", 16)
    cell = column(table, "mini-qwen3.ood_pass")["GeoSD"]
    assert (cell.value, cell.sd) == pytest.approx((passed.mean(), passed.std()))
    assert column(table, "mini-qwen3.d_fr")["GeoSD, λ = 0"].text == "0.26"


def test_the_papers_numbers_stand_beside_the_model_of_its_ablations_only():
    models = ["mini-qwen3", "mini-llama"]
    table = table_ablations.build(*made_up_tables(models), models, METHODS)
    paper = {key: column(table, f"mini-qwen3.{key}.paper") for key in ("id", "delta_ood", "d_fr")}
    assert [cell.text for cell in paper["id"].values()] == ["82.7", "80.2", "83.3", "82.1"]
    assert [cell.text for cell in paper["delta_ood"].values()] == ["–", "-4.4", "-6.7", "-3.8"]
    assert [cell.text for cell in paper["d_fr"].values()] == ["0.16", "0.21", "0.32", "0.25"]
    passed = column(table, "mini-qwen3.ood_pass.paper")
    assert [cell.text for cell in passed.values()] == ["66.1", "62.3", "58.9", "60.4"]
    assert not any("mini-llama" in c.key and "paper" in c.key for c in table.columns)


def test_the_papers_coverage_names_its_k_where_the_studys_is_another():
    scores, drift = made_up_tables()
    for rows, label in ((scores, "paper"), (scores[scores["k"] == 1], "paper @16")):
        both = pd.concat([scores[scores["metric"] == "avg@k"], rows[rows["metric"] == "pass@k"]])
        table = table_ablations.build(both, drift, ["mini-qwen3"], METHODS)
        labels = {column.key: column.label for column in table.columns}
        assert labels["mini-qwen3.ood_pass.paper"] == label


def test_every_form_can_be_written_and_a_missing_drift_is_an_empty_cell():
    scores, drift = made_up_tables(seeds=1)
    table = table_ablations.build(scores, drift[:0], ["mini-qwen3"], METHODS)
    assert column(table, "mini-qwen3.d_fr")["GeoSD"].number is None
    assert "OOD pass@16" in table_to_markdown(table) and r"$\pi_0$" in to_latex(table)
