"""The frontier shows the runs' numbers and hides no label."""

from __future__ import annotations

import itertools
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

from geosd.reporting import figure_frontier
from geosd.reporting.method_style import METHODS, method, ordered
from geosd.scores.score_table import scores_by_seed

QUICK = ["pi_0", "fwdkl", "revkl", "grpo", "geosd"]


def test_gains_and_whiskers_are_those_of_the_runs(make):
    scores = make()
    gains = figure_frontier.frontier_figure_points(scores, "mini-qwen3", QUICK)
    means = figure_frontier.mean_frontier_points(gains)
    assert list(means.index) == ["grpo", "fwdkl", "revkl", "geosd"]
    runs = scores_by_seed(scores, "mini-qwen3", "fwdkl", "id")
    base = scores_by_seed(scores, "mini-qwen3", "pi_0", "id")
    gain, ood_gain = means.loc["fwdkl"]
    assert gain == pytest.approx(runs.mean() - base.mean())
    axes, *_ = figure_frontier.plot(scores, ["mini-qwen3"], QUICK).axes
    *_, points, origin = [c for c in axes.collections if len(c.get_offsets())]
    np.testing.assert_allclose(points.get_offsets(), means[["id_gain", "ood_gain"]])
    sd = np.std(runs, ddof=1)
    whiskers = [path.vertices for c in axes.collections for path in c.get_paths()]
    expected = np.array([[gain - sd, ood_gain], [gain + sd, ood_gain]])
    assert any(w.shape == (2, 2) and np.allclose(w, expected) for w in whiskers)


@pytest.mark.slow
@pytest.mark.parametrize("models", [("mini-qwen3",), ("mini-qwen3", "mini-olmo3", "mini-llama")])
def test_labels_cover_neither_each_other_nor_the_frame(make, models):
    figure = figure_frontier.plot(make(models), models, list(METHODS))
    figure.draw_without_rendering()
    planes = [axes for axes in figure.axes if axes.get_xlabel().startswith("ID gain")]
    assert len(planes) == len(models)
    for axes in planes:
        boxes = {t.get_text(): t.get_window_extent() for t in axes.texts}
        assert set(boxes) == {METHODS[v].drawn for v in list(METHODS)[:10]}
        for (a, first_box), (b, second_box) in itertools.combinations(boxes.items(), 2):
            # Ascender and descender room may touch; letters may not.
            assert not first_box.shrunk(0.95, 0.7).overlaps(second_box.shrunk(0.95, 0.7)), (a, b)
        frame = axes.get_window_extent()
        for text, box in boxes.items():
            assert box.x0 >= frame.x0 - 1 and box.x1 <= figure.bbox.x1, text


@pytest.mark.slow
def test_pass_at_k_stands_on_one_scale_for_all_models(make):
    models = ("mini-qwen3", "mini-llama")
    scores = make(models)
    figure = figure_frontier.plot(scores, models, QUICK)
    panels = [axes for axes in figure.axes if axes.get_xlabel() == "OOD pass@16 (%)"]
    assert len(panels) == 2 and panels[0].get_xlim() == panels[1].get_xlim()
    for axes, model in zip(panels, models, strict=True):
        for row, variant in enumerate(ordered(QUICK)):
            runs = scores_by_seed(scores, model, variant, "ood_avg", "pass@k", 16)
            at = [line.get_xydata() for line in axes.lines]
            assert any(np.allclose(xy, (runs.mean(), row)) for xy in np.concatenate(at))
            ends = (runs.mean() - runs.std(), runs.mean() + runs.std())
            assert any(
                xy.shape == (2, 2) and np.allclose(xy, [(end, row) for end in ends]) for xy in at
            )


def test_without_pass_at_k_there_is_no_row_for_it(make):
    scores = make()
    figure = figure_frontier.plot(scores[scores["metric"] == "avg@k"], ["mini-qwen3"], QUICK)
    assert len(figure.axes) == 1


def test_one_model_fits_one_column(make):
    figure = figure_frontier.plot(make(), ["mini-qwen3"], QUICK)
    assert figure.get_size_inches()[0] < 3.5


def test_without_the_base_model_there_is_no_gain(make):
    with pytest.raises(ValueError, match="(?s)pi_0.*Hint:"):
        figure_frontier.plot(make(variants=["geosd"]), ["mini-qwen3"], ["geosd"])


def test_an_unknown_variant_is_drawn_under_its_own_name(make):
    scores = make().replace({"variant": {"tip": "mine"}})
    gains = figure_frontier.frontier_figure_points(scores, "mini-qwen3", ["pi_0", "geosd", "mine"])
    assert list(gains["variant"].unique()) == ["geosd", "mine"]
    assert method("mine").label == "mine" and ordered(["mine", "geosd"]) == ["geosd", "mine"]


@pytest.mark.slow
def test_reporting_and_analysis_do_not_import_torch():
    modules = "table_main table_benchmarks table_significance claims_page table_ablations"
    modules += " figure_frontier figure_overview figure_consensus figure_privilege figure_scale"
    modules += " figure_stepsize"
    code = (
        "import sys, geosd.claims.judging, geosd.scores.score_table, geosd.scores.step_log_tables\n"
    )
    code += "".join(f"import geosd.reporting.{name}\n" for name in modules.split())
    code += "sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def means(**points):
    return pd.DataFrame(points.values(), index=list(points), columns=["id_gain", "ood_gain"])


def test_points_are_crowded_where_four_lie_within_a_quarter_of_the_farthest():
    near = dict.fromkeys(("sft", "fwdkl", "tip", "geosd"), (1.0, -5.0))
    far = (-3.0, 20.0)
    crowded = figure_frontier.crowded_variants
    assert crowded(means(**near, revkl=far)) == list(near)
    assert crowded(means(sft=near["sft"], tip=near["tip"], geosd=near["geosd"], revkl=far)) == []
    assert crowded(means(**near, revkl=(0.0, 19.0))) == []
    assert crowded(means()) == []


@pytest.fixture
def crowded(make):
    """Scores with one far method, and an outlier that gives a near one long whiskers."""
    scores = make()
    scores = scores[scores["variant"].isin([*QUICK, "sft"])].reset_index(drop=True)
    average = scores["benchmark"].isin(["id", "ood_avg"]) & (scores["metric"] == "avg@k")
    scores.loc[average & (scores["variant"] == "revkl"), "value"] -= 900.0
    scores.loc[average & (scores["variant"] == "fwdkl") & (scores["seed"] == 0), "value"] -= 80.0
    return scores


@pytest.mark.slow
def test_a_crowd_at_the_origin_has_a_panel_of_its_own_where_it_is_labelled(crowded):
    figure = figure_frontier.plot(crowded, ["mini-qwen3"], [*QUICK, "sft"])
    figure.draw_without_rendering()
    whole, part, _ = figure.axes
    assert [text.get_text() for text in whole.texts] == [METHODS["revkl"].label]
    near = {METHODS[v].drawn for v in [*QUICK, "sft"] if v != "revkl"}
    assert {text.get_text() for text in part.texts} == near
    (frame,) = whole.patches
    assert frame.get_bbox().x0 == part.get_xlim()[0] and frame.get_bbox().y1 == part.get_ylim()[1]


@pytest.mark.slow
def test_no_whisker_is_clipped(crowded):
    for axes in figure_frontier.plot(crowded, ["mini-qwen3"], [*QUICK, "sft"]).axes[:2]:
        whiskers = [p.vertices for c in axes.collections for p in c.get_paths() if len(p) == 2]
        corners = np.concatenate(whiskers)
        assert len(whiskers) >= 8
        for values, (low, high) in zip(corners.T, (axes.get_xlim(), axes.get_ylim()), strict=True):
            assert low < values.min() and values.max() < high


def test_a_crowd_with_whiskers_as_wide_as_the_figure_is_not_enlarged():
    points = means(sft=(1, 1), fwdkl=(1, 0), tip=(0, 1), geosd=(2, 2), revkl=(-10.0, -10.0))
    spread = points * 0 + 0.5
    crowd = ["sft", "fwdkl", "tip", "geosd"]
    assert figure_frontier.enlarged_variants(points, spread) == crowd
    spread.loc["tip"] = 9.0
    assert figure_frontier.enlarged_variants(points, spread) == []
