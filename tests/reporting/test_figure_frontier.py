"""The frontier shows the runs' numbers, hides no label, and is the same bytes every time."""

from __future__ import annotations

import itertools
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

from geosd.reporting import figure_frontier
from geosd.reporting.figures import save
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
    gain, ood_gain, pass_at_k = means.loc["fwdkl"]
    assert gain == pytest.approx(runs.mean() - base.mean())
    assert pass_at_k == pytest.approx(
        scores_by_seed(scores, "mini-qwen3", "fwdkl", "ood_avg", "pass@k", 16).mean()
    )
    (axes,) = figure_frontier.draw(scores, ["mini-qwen3"], QUICK).axes
    *_, points, origin = [c for c in axes.collections if len(c.get_offsets())]
    np.testing.assert_allclose(points.get_offsets(), means[["id_gain", "ood_gain"]])
    sd = np.std(runs, ddof=1)
    whiskers = [path.vertices for c in axes.collections for path in c.get_paths()]
    expected = np.array([[gain - sd, ood_gain], [gain + sd, ood_gain]])
    assert any(w.shape == (2, 2) and np.allclose(w, expected) for w in whiskers)


def test_the_same_scores_draw_the_same_bytes(make, tmp_path):
    files = []
    for folder in ("a", "b"):
        figure = figure_frontier.draw(make(), ["mini-qwen3"], QUICK)
        files.append([p.read_bytes() for p in save(figure, tmp_path / folder, "figure")])
    assert files[0] == files[1]
    names = sorted(path.name for path in (tmp_path / "a").iterdir())
    assert names == ["figure.pdf", "figure.png", "figure.svg"]


@pytest.mark.parametrize("models", [("mini-qwen3",), ("mini-qwen3", "mini-olmo3", "mini-llama")])
def test_labels_cover_neither_each_other_nor_the_frame(make, models):
    figure = figure_frontier.draw(make(models), models, list(METHODS))
    figure.draw_without_rendering()
    for axes in figure.axes:
        boxes = {t.get_text(): t.get_window_extent() for t in axes.texts}
        assert set(boxes) == {METHODS[v].label for v in list(METHODS)[:10]}
        for (a, one), (b, other) in itertools.combinations(boxes.items(), 2):
            # Ascender and descender room may touch; letters may not.
            assert not one.shrunk(0.95, 0.7).overlaps(other.shrunk(0.95, 0.7)), (a, b)
        frame = axes.get_window_extent()
        for text, box in boxes.items():
            assert box.x0 >= frame.x0 - 1 and box.x1 <= figure.bbox.x1, text


@pytest.mark.parametrize("pass_at_k", [[99.0, 99.0], [96.0, 99.5], [40.0, 90.0], [0.0], [100.0]])
def test_dot_sizes_never_stretch_less_than_ten_points(pass_at_k):
    low, high = figure_frontier.marker_size_range(pass_at_k)
    assert 0 <= low <= min(pass_at_k) + 1e-9 and max(pass_at_k) - 1e-9 <= high <= 100
    assert high - low >= 10 - 1e-9


def test_dot_areas_follow_pass_at_k_and_the_legend_says_how(make):
    scores = make()
    figure = figure_frontier.draw(scores, ["mini-qwen3"], QUICK)
    means = figure_frontier.mean_frontier_points(
        figure_frontier.frontier_figure_points(scores, "mini-qwen3", QUICK)
    )
    points = next(c for c in figure.axes[0].collections if len(c.get_offsets()) == len(means))
    legend = figure.legends[0]
    low, high = figure_frontier.marker_size_range(means["pass_at_k"])
    shown = [low, (low + high) / 2, high]
    assert [text.get_text() for text in legend.get_texts()] == [f"{value:.0f}%" for value in shown]
    areas = [handle.get_sizes()[0] for handle in legend.legend_handles]
    expected = np.interp(means["pass_at_k"], shown, areas)
    np.testing.assert_allclose(points.get_sizes(), expected)


def test_one_model_fits_one_column(make):
    figure = figure_frontier.draw(make(), ["mini-qwen3"], QUICK)
    assert figure.get_size_inches()[0] < 3.5


def test_without_the_base_model_there_is_no_gain(make):
    with pytest.raises(ValueError, match="(?s)pi_0.*Hint:"):
        figure_frontier.draw(make(variants=["geosd"]), ["mini-qwen3"], ["geosd"])


def test_an_unknown_variant_is_drawn_under_its_own_name(make):
    scores = make().replace({"variant": {"tip": "mine"}})
    gains = figure_frontier.frontier_figure_points(scores, "mini-qwen3", ["pi_0", "geosd", "mine"])
    assert list(gains["variant"].unique()) == ["geosd", "mine"]
    assert method("mine").label == "mine" and ordered(["mine", "geosd"]) == ["geosd", "mine"]


def _luminance(colour: str) -> float:
    channel = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channel]
    return float(np.dot([0.2126, 0.7152, 0.0722], linear))


# Machado, Oliveira and Fernandes 2009, severity 1, on linear RGB.
DEUTERAN = np.array([[0.367, 0.861, -0.228], [0.280, 0.673, 0.047], [-0.012, 0.043, 0.969]])
PROTAN = np.array([[0.152, 1.053, -0.205], [0.115, 0.786, 0.099], [-0.004, -0.048, 1.052]])


@pytest.mark.parametrize("blindness", [np.eye(3), DEUTERAN, PROTAN])
def test_methods_with_the_same_marker_differ_in_colour_to_every_eye(blindness):
    def seen(colour):
        channel = np.array([int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)])
        return np.clip(blindness @ channel**2.2, 0, 1) ** (1 / 2.2)

    for a, b in itertools.combinations(METHODS.values(), 2):
        if a.marker == b.marker:
            assert np.abs(seen(a.colour) - seen(b.colour)).max() > 0.15, (a.label, b.label)


def test_colours_are_unique_and_dark_enough_for_white_paper():
    colours = [m.colour for m in METHODS.values()]
    assert len(set(colours)) == len(colours)
    assert all(_luminance(colour) < 0.5 for colour in colours)


def test_reporting_and_analysis_do_not_import_torch():
    modules = "table_main table_benchmarks table_significance claims_page table_ablations"
    modules += " figure_frontier figure_overview figure_consensus figure_privilege figure_scale"
    modules += " figure_stepsize"
    code = (
        "import sys, geosd.claims.verdicts, geosd.scores.score_table, geosd.scores.drift_tables\n"
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


def test_a_crowd_at_the_origin_has_a_panel_of_its_own_where_it_is_labelled(make):
    scores = make()
    fallen = (scores["variant"] == "revkl") & scores["benchmark"].isin(["id", "ood_avg"])
    scores.loc[fallen & (scores["metric"] == "avg@k"), "value"] -= 900.0
    methods = [*QUICK, "sft"]
    figure = figure_frontier.draw(scores, ["mini-qwen3"], methods)
    figure.draw_without_rendering()
    whole, part = figure.axes
    assert [text.get_text() for text in whole.texts] == [METHODS["revkl"].label]
    near = {METHODS[v].label for v in methods if v != "revkl"}
    assert {text.get_text() for text in part.texts} == near
    (frame,) = whole.patches
    assert frame.get_bbox().x0 == part.get_xlim()[0] and frame.get_bbox().y1 == part.get_ylim()[1]
