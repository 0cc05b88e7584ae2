"""The paper's three tables on made-up scores: rows, companions, and numbers by hand."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from geosd.reporting import (
    table_benchmarks,
    table_main,
    table_main_vs_paper,
    table_significance,
)
from geosd.reporting.latex_tables import to_latex
from geosd.reporting.specs import output_spec_caption
from geosd.reporting.tables import table_to_markdown
from geosd.scores.score_table import scores_by_seed
from geosd.scores.tidy import COLUMNS

MODELS = ("mini-qwen3", "unheard-of")
QUICK = ["geosd", "fwdkl", "pi_0", "grpo", "revkl"]


def main_table(scores, models, methods, ends=(), shares=()):
    """`table_main`; `ends` are rows (model, variant, seed, d_FR) of the drift at the end.

    `shares` are rows of the table of shares, without which there are no intervals.
    """
    drift = pd.DataFrame(
        [(m, v, seed, 0, "drift/pi_0", far) for m, v, seed, far in ends],
        columns=list(COLUMNS["drift"]),
    )
    of_problems = pd.DataFrame([*shares], columns=list(COLUMNS["shares"]))
    return table_main.build(scores, drift, of_problems, models, methods)


def column(table, key):
    at = [c.key for c in table.columns].index(key)
    return {row.label: row.cells[at] for row in table.rows}


def test_rows_take_the_papers_order_whatever_order_the_study_has(make):
    table = main_table(make(variants=QUICK), ["mini-qwen3"], QUICK)
    assert [row.label for row in table.rows] == ["π₀", "GRPO", "FwdKL", "RevKL", "GeoSD"]


def test_mean_deviation_and_change_are_those_of_the_runs(make):
    scores = make()
    table = main_table(scores, ["mini-qwen3"], QUICK)
    runs = scores_by_seed(scores, "mini-qwen3", "geosd", "ood_avg")
    base = scores_by_seed(scores, "mini-qwen3", "pi_0", "ood_avg")
    cell = column(table, "mini-qwen3.ood_avg")["GeoSD"]
    assert (cell.value, cell.sd) == pytest.approx((np.mean(runs), np.std(runs, ddof=1)))
    assert cell.rank == "best"
    change = column(table, "mini-qwen3.delta_ood")
    assert change["GeoSD"].value == pytest.approx(runs.mean() - base.mean())
    assert change["GeoSD"].text.startswith("+") and change["π₀"].number is None


def test_a_loss_is_never_marked_as_best(make):
    scores = make(variants=["pi_0", "fwdkl", "revkl", "geosd"])
    change = column(main_table(scores, ["mini-qwen3"], QUICK), "mini-qwen3.delta_ood")
    assert {name: cell.rank for name, cell in change.items()} == {
        **dict.fromkeys(("π₀", "GRPO", "FwdKL", "RevKL"), ""),
        "GeoSD": "best",
    }


def test_methods_that_hardly_moved_have_a_mark(make):
    ends = [("mini-qwen3", "fwdkl", 0, 0.01), ("mini-qwen3", "fwdkl", 1, 0.02)]
    ends += [("mini-qwen3", "geosd", 0, 0.01), ("mini-qwen3", "geosd", 1, 0.04)]
    table = main_table(make(), ["mini-qwen3"], QUICK, ends)
    assert [row.shown for row in table.rows] == ["π₀", "GRPO", "FwdKL†", "RevKL", "GeoSD"]
    assert "less than 0.02 radians" in table.note
    assert "†" not in main_table(make(), ["mini-qwen3"], QUICK, ends[2:]).note


def test_the_main_table_has_the_ten_columns_of_the_papers(make):
    models = ["mini-qwen3", "mini-olmo3", "mini-llama"]
    table = main_table(make(models=models), models, QUICK)
    assert len(table.columns) == 9 and {c.label for c in table.columns} == {
        "ID",
        "OOD avg.",
        "Δ OOD",
    }


def test_the_papers_numbers_stand_beside_models_that_stand_for_a_family(make):
    table = table_main_vs_paper.build(make(models=MODELS), MODELS, QUICK)
    by_kind = {(row.kind.partition(" ")[0], row.label): row.cells for row in table.rows}
    keys = [c.key for c in table.columns]
    geosd = dict(zip(keys, by_kind["mini-qwen3", "GeoSD"], strict=True))
    assert (geosd["ood_avg.paper"].value, geosd["ood_avg.paper"].sd) == (60.5, 0.5)
    fwdkl = dict(zip(keys, by_kind["mini-qwen3", "FwdKL"], strict=True))
    assert fwdkl["delta_ood.paper"].value == -8.1
    ours = [
        scores_by_seed(make(models=MODELS), "mini-qwen3", v, "ood_avg") for v in ("geosd", "pi_0")
    ]
    assert geosd["delta_ood"].value == pytest.approx(ours[0].mean() - ours[1].mean())
    other = dict(zip(keys, by_kind["unheard-of", "GeoSD"], strict=True))
    assert other["ood_avg.paper"].value is None and other["ood_avg"].value is not None


def reasons(scores, of_pool=True, **shares):
    """Scores with the shares of responses that were not compared: metric -> (ID, OOD)."""
    known = dict.fromkeys(("truncated", "no_answer", "unreadable", "timeout", "crash"), (0.0, 0.0))
    runs = scores[["model", "variant", "seed", "draw"]].drop_duplicates().to_dict("records")
    rows = [
        {**run, "benchmark": at, "split": split, "metric": metric, "k": 16, "value": value}
        for run in runs
        for metric, both in (known | shares).items()
        for at, split, value in zip(("id", "ood_avg"), ("ID", "OOD"), both, strict=True)
    ]
    pool = {"with_solution": 6.25, "truncated": 20.0, "no_answer": 70.0} if of_pool else {}
    for run in runs:
        head = {**run, "benchmark": "pool", "split": "train", "k": 8}
        rows += [{**head, "metric": metric, "value": value} for metric, value in pool.items()]
    return pd.concat([scores, pd.DataFrame(rows)], ignore_index=True)


def test_shares_of_truncated_responses_stand_under_the_table(make):
    scores = reasons(make(models=MODELS), truncated=(31.25, 22.5))
    table = main_table(scores, MODELS, QUICK)
    assert "in percent (ID / OOD): truncated: π₀ 31.2 / 22.5, GRPO 31.2 / 22.5" in table.remarks[1]


def test_a_pool_and_responses_that_came_to_nothing_are_named_under_the_table(make):
    scores = reasons(make(), no_answer=(87.5, 90.0), timeout=(0.0, 0.25))
    text = " ".join(table_to_markdown(main_table(scores, ["mini-qwen3"], QUICK)).split())
    below = text[text.rindex("|") :]
    assert "6.2 % of the training problems have a verified solution" in below
    assert "20.0 % truncated, 70.0 % no answer." in below
    assert "(ID / OOD): no answer: π₀ 87.5 / 90.0, GRPO 87.5 / 90.0" in below
    assert "timeout: π₀ 0.0 / 0.2" in below and "unreadable" not in below
    assert r"87.5 / 90.0" in to_latex(main_table(scores, ["mini-qwen3"], QUICK))
    nothing = main_table(reasons(make(), of_pool=False), ["mini-qwen3"], QUICK)
    assert nothing.remarks == (
        "Responses of mini-qwen3 that were not compared, in percent (ID / OOD): none.",
    )


def test_scores_without_reasons_have_no_column_and_no_words_of_them(make):
    table = main_table(make(), ["mini-qwen3"], QUICK)
    assert not table.remarks and not any("truncated" in c.key for c in table.columns)


def test_a_note_speaks_of_the_paper_only_beside_a_column_of_it(make):
    for models in (["mini-qwen3"], ["unheard-of"]):
        table = table_benchmarks.build(make(models=models), models, QUICK)
        beside = any("paper" in c.key for c in table.columns)
        assert beside == (models == ["mini-qwen3"]) == ("paper" in table.note)


def test_a_caption_speaks_of_the_papers_numbers_only_beside_a_column_of_them():
    beside, alone = (output_spec_caption("table_benchmarks", [model]) for model in MODELS)
    assert "the paper's" in beside and "the paper's" not in alone
    assert not set("{}") & set(beside + alone)


def test_a_method_without_runs_has_empty_cells_and_one_seed_no_deviation(make):
    table = main_table(make(variants=["pi_0", "geosd"], seeds=1), ["mini-qwen3"], QUICK)
    cells = column(table, "mini-qwen3.id")
    assert cells["FwdKL"].number is None
    assert cells["GeoSD"].number is not None and cells["GeoSD"].spread == ""
    assert "1 run" in table.note


def test_benchmarks_of_another_world_have_no_companion_but_their_average_has(make):
    table = table_benchmarks.build(make(), ["mini-qwen3"], QUICK)
    keys = [c.key.removeprefix("mini-qwen3.") for c in table.columns]
    assert keys == ["long", "mulhard", "mixed", "easy", "ood_avg", "ood_avg.paper"]


def test_the_papers_own_benchmarks_have_companions(make):
    scores = make().replace({"benchmark": {"long": "aime24"}})
    table = table_benchmarks.build(scores, ["mini-qwen3"], QUICK)
    assert column(table, "mini-qwen3.aime24.paper")["GeoSD"].value == 40.4


def test_significance_takes_the_strongest_baseline_and_never_an_ablation(make):
    scores = make()
    ablation = scores[scores["variant"] == "geosd"].assign(variant="geosd_adamw")
    ablation["value"] += 20
    scores = type(scores)(np.concatenate([scores, ablation]), columns=scores.columns).astype(
        scores.dtypes
    )
    methods = [*scores["variant"].unique()]
    table = table_significance.build(scores, ["mini-qwen3"], methods)
    own_row, paper = table.rows
    means = scores.query("benchmark == 'ood_avg' and metric == 'avg@k'")
    means = means.groupby("variant")["value"].mean().drop(["geosd", "geosd_adamw"])
    best = column(table, "baseline")[own_row.label].value
    assert best.lower() == means.idxmax()
    assert own_row.cells[0].value == 3
    assert paper.label == "paper: Qwen3-8B" and paper.cells[-2].value == 2.9e-9
    runs = scores.query("benchmark == 'ood_avg' and metric == 'avg@k'").pivot(
        index="seed", columns="variant", values="value"
    )
    expected = stats.ttest_rel(runs["geosd"], runs[means.idxmax()], alternative="greater").pvalue
    assert own_row.cells[-1].value == pytest.approx(expected) and paper.cells[-1].number is None


@pytest.mark.slow
def test_significance_is_paired_over_draws_of_the_base_model(make):
    scores = make(seeds=6)
    undrawn_row = table_significance.build(scores, ["mini-qwen3"], QUICK).rows[0]
    drawn = scores.assign(draw=scores["seed"] % 3)
    drawn_row = table_significance.build(drawn, ["mini-qwen3"], QUICK).rows[0]
    best = {"GRPO": "grpo", "π₀": "pi_0"}[drawn_row.cells[2].value]
    average = drawn.query("benchmark == 'ood_avg' and metric == 'avg@k'")
    means = average.groupby(["variant", "draw"])["value"].mean()
    expected = stats.ttest_rel(means["geosd"], means[best], alternative="greater").pvalue
    assert drawn_row.cells[-1].value == pytest.approx(expected)
    ends = stats.ttest_rel(means["geosd"], means[best]).confidence_interval()
    assert [cell.value for cell in drawn_row.cells[5:7]] == pytest.approx([*ends])
    same = [i for i, _ in enumerate(drawn_row.cells[:-1]) if i not in (5, 6)]
    assert [drawn_row.cells[i].value for i in same] == [undrawn_row.cells[i].value for i in same]


@pytest.mark.slow
def test_significance_is_corrected_over_the_models(make):
    one_model = table_significance.build(make(), ["mini-qwen3"], QUICK)
    two_models = table_significance.build(make(models=MODELS), MODELS, QUICK)
    alone = column(one_model, "p_holm")["mini-qwen3"].value
    assert column(two_models, "p_holm")["mini-qwen3"].value >= alone


def test_significance_without_geosd_or_spread_is_empty_and_not_an_error(make):
    none = table_significance.build(make(variants=["pi_0", "grpo"]), ["mini-qwen3"], QUICK)
    assert none.rows == ()
    single = table_significance.build(make(seeds=1), ["mini-qwen3"], QUICK)
    assert column(single, "p_holm")["mini-qwen3"].number is None
