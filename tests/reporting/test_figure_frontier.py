"""The frontier and the coverage show the runs' numbers, and the paper's where they say so."""

from __future__ import annotations

import numpy as np
import pytest
from matplotlib.colors import to_hex
from scipy import stats

from geosd.claims.published import published_number
from geosd.reporting import figure_coverage, figure_frontier
from geosd.reporting.figures import HALF_IN, PAGE_IN
from geosd.reporting.method_style import BACKGROUND, METHODS, method_style, ordered_methods
from geosd.scores.score_table import scores_by_seed

QUICK = ["pi_0", "fwdkl", "revkl", "grpo", "geosd"]


def points(axes, colour):
    """Where the filled and the open markers of a colour stand."""
    lines = [line for line in axes.lines if line.get_marker() not in ("None", "", None)]
    filled = [line.get_xydata()[0] for line in lines if to_hex(line.get_mfc()) == colour.lower()]
    hollow = [
        line.get_xydata()[0]
        for line in lines
        if to_hex(line.get_mfc()) == "#ffffff" and to_hex(line.get_mec()) == colour.lower()
    ]
    return filled, hollow


def gains_by_seed(scores, variant):
    """Gains of each run over the base model of its seed, in and out of distribution."""
    return [
        scores_by_seed(scores, "mini-qwen3", variant, name)
        - scores_by_seed(scores, "mini-qwen3", "pi_0", name)
        for name in ("id", "ood_avg")
    ]


def test_gains_are_paired_by_seed_and_whiskers_are_intervals_of_their_mean(make):
    scores = make(seeds=5)
    (axes,) = figure_frontier.plot(scores, ["mini-qwen3"], QUICK).axes
    across, up = gains_by_seed(scores, "fwdkl")
    colour = METHODS["fwdkl"].colour
    assert any(np.allclose(at, (across.mean(), up.mean())) for at in points(axes, colour)[0])
    low, high = stats.t.interval(0.95, 4, across.mean(), stats.sem(across))
    ends = [line.get_xydata() for line in axes.lines if line.get_color() == colour]
    whisker = [(low, up.mean()), (high, up.mean())]
    assert any(end.shape == (2, 2) and np.allclose(end, whisker) for end in ends)


def test_the_interval_is_over_base_models_where_there_are_several(make):
    scores = make(seeds=8)
    scores["draw"] = scores["seed"] % 4
    (axes,) = figure_frontier.plot(scores, ["mini-qwen3"], QUICK).axes
    across, up = (gain.groupby(gain.index % 4).mean() for gain in gains_by_seed(scores, "geosd"))
    low, high = stats.t.interval(0.95, 3, across.mean(), stats.sem(across))
    ends = [line.get_xydata() for line in axes.lines]
    whisker = [(low, up.mean()), (high, up.mean())]
    assert any(end.shape == (2, 2) and np.allclose(end, whisker) for end in ends)


def test_of_three_runs_each_is_drawn_and_no_interval(make):
    scores = make(seeds=3)
    (axes,) = figure_frontier.plot(scores, ["mini-qwen3"], QUICK).axes
    gains = np.column_stack(gains_by_seed(scores, "grpo"))
    drawn = [line.get_xydata() for line in axes.lines if line.get_color() == METHODS["grpo"].colour]
    assert any(xy.shape == (3, 2) and np.allclose(xy, gains) for xy in drawn)
    assert not any(xy.shape == (2, 2) for xy in drawn)


def test_four_methods_have_their_colour_and_the_papers_points_are_open(make):
    models = ["mini-qwen3", "unheard-of"]
    figure = figure_frontier.plot(make(models), models, list(METHODS))
    assert figure.get_size_inches()[0] == PAGE_IN
    for axes, model in zip(figure.axes, models, strict=True):
        for name in figure_frontier.NAMED:
            filled, hollow = points(axes, METHODS[name].colour)
            assert filled and len(hollow) == (model == "mini-qwen3")
        assert not points(axes, METHODS["jsd"].colour)[0] and points(axes, BACKGROUND)[0]
    own, base = (published_number("Qwen3-8B", v, "ood_avg").mean for v in ("geosd", "pi_0"))
    (at,) = points(figure.axes[0], METHODS["geosd"].colour)[1]
    assert at[1] == pytest.approx(own - base)
    named = [text.get_text() for text in figure.legends[0].get_texts()]
    assert named == ["GRPO", "FwdKL", "RevKL", "GeoSD", "other methods", "the paper's"]


def test_all_planes_share_their_axes_and_shade_the_whole_quadrant_of_gains(make):
    models = ["mini-qwen3", "mini-llama"]
    figure = figure_frontier.plot(make(models), models, QUICK)
    limits = {(axes.get_xlim(), axes.get_ylim()) for axes in figure.axes}
    assert len(limits) == 1
    ((right, top),) = {(x, y) for (_, x), (_, y) in limits}
    for axes in figure.axes:
        corners = axes.collections[0].get_paths()[0].vertices
        assert corners.min(axis=0) == pytest.approx(0)
        assert corners.max(axis=0) == pytest.approx((right, top))


def test_pass_at_k_stands_on_one_scale_for_all_models(make):
    models = ("mini-qwen3", "mini-llama")
    scores = make(models, seeds=4)
    figure = figure_coverage.plot(scores, models, QUICK)
    assert {axes.get_xlabel() for axes in figure.axes} == {"OOD pass@16 (%)"}
    assert figure.axes[0].get_xlim() == figure.axes[1].get_xlim()
    for axes, model in zip(figure.axes, models, strict=True):
        for row, variant in enumerate(ordered_methods(QUICK)):
            runs = scores_by_seed(scores, model, variant, "ood_avg", "pass@k", 16)
            at = [line.get_xydata() for line in axes.lines]
            assert any(np.allclose(xy[0], (runs.mean(), row)) for xy in at)
            low, high = stats.t.interval(0.95, 3, runs.mean(), stats.sem(runs))
            assert any(
                xy.shape == (2, 2) and np.allclose(xy, [(low, row), (high, row)]) for xy in at
            )


def test_one_model_takes_half_the_page(make):
    figure = figure_frontier.plot(make(), ["mini-qwen3"], QUICK)
    assert figure.get_size_inches()[0] == HALF_IN


def test_without_the_base_model_there_is_no_gain(make):
    with pytest.raises(ValueError, match="(?s)pi_0.*Hint:"):
        figure_frontier.plot(make(variants=["geosd"]), ["mini-qwen3"], ["geosd"])


def test_an_unknown_variant_keeps_its_own_name():
    assert method_style("mine").label == "mine" and ordered_methods(["mine", "geosd"]) == [
        "geosd",
        "mine",
    ]
