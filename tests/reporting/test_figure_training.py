"""What the figure of training curves draws: means over seeds of the runs of its study."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from geosd.reporting import figure_training
from geosd.reporting.method_style import BACKGROUND, method_style
from geosd.scores.tidy import COLUMNS

STEPS = (0, 4, 8)


@pytest.fixture
def curves():
    rows = [
        (model, variant, seed, 0, step, quantity, 0.1 * step + 0.01 * seed + 0.02 * place)
        for model in ("a", "b")
        for place, variant in enumerate(("geosd", "grpo", "left_over"))
        for seed in range(4)
        for step in STEPS
        for quantity in figure_training.PANELS
    ]
    return pd.DataFrame(rows, columns=list(COLUMNS["training_curves"]))


def test_each_line_is_the_mean_over_seeds_in_the_methods_colour(curves):
    figure = figure_training.plot(curves, ["a", "b"], ["pi_0", "grpo", "geosd"])
    panels = figure.axes
    assert len(panels) == 6
    for axes in panels:
        drawn = {line.get_color(): line.get_xydata() for line in axes.get_lines()}
        assert set(drawn) == {method_style("geosd").colour, method_style("grpo").colour}
        for place, name in enumerate(("geosd", "grpo")):
            expected = [(s, 0.1 * s + 0.015 + 0.02 * place) for s in STEPS]
            assert np.allclose(drawn[method_style(name).colour], expected)
    assert [axes.get_title(loc="left") for axes in panels] == ["a", "", "", "b", "", ""]
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["GRPO", "GeoSD"]


def test_bands_are_intervals_of_the_mean(curves):
    figure = figure_training.plot(curves, ["a"], ["grpo"])
    at_four = curves[
        (curves["model"] == "a") & (curves["variant"] == "grpo") & (curves["step"] == 4)
    ]
    values = at_four.loc[at_four["quantity"] == "overlap", "value"]
    expected = stats.t.interval(0.95, 3, values.mean(), stats.sem(values))
    (band,) = figure.axes[2].collections
    corners = band.get_paths()[0].vertices
    ends = sorted({y for x, y in corners if x == 4})
    assert ends == pytest.approx(expected)


def test_bands_end_where_the_scale_does(curves):
    wide = curves.assign(value=curves["seed"].map({0: 0.0, 1: 0.9, 2: 1.0, 3: 1.0}))
    figure = figure_training.plot(wide, ["a"], ["grpo"])
    for axes, most in zip(figure.axes, (1.0, np.pi, 1.0), strict=True):
        heights = axes.collections[0].get_paths()[0].vertices[:, 1]
        assert heights.min() == 0 and heights.max() <= most
    assert heights.max() == 1


def test_of_more_than_five_methods_the_plain_ones_of_each_idea_have_a_colour(curves):
    strong = ("grpo", "fwdkl", "revkl", "geosd")
    names = [*strong, "sft", "jsd"]
    one = curves[curves["variant"] == "geosd"]
    figure = figure_training.plot(
        pd.concat([one.assign(variant=name) for name in names]), ["a"], names
    )
    for axes in figure.axes:
        colours = [line.get_color() for line in axes.get_lines()]
        assert colours.count(BACKGROUND) == 2
        assert set(colours) == {BACKGROUND, *(method_style(name).colour for name in strong)}
        assert len(axes.collections) == len(strong)  # bands
    # SFT has one point of accuracy, which no line of its own shows.
    points = [line for line in figure.axes[0].get_lines() if len(line.get_xdata()) == 1]
    assert [line.get_marker() for line in points] == ["."]
    labels = [text.get_text() for text in figure.legends[0].get_texts()]
    assert labels == [*(method_style(name).label for name in strong), "other methods"]


def test_in_grey_print_lines_differ_by_marker_or_lightness(curves):
    names = ["grpo", "geosd", "left_over"]
    figure = figure_training.plot(curves, ["a"], names)
    for axes in figure.axes:
        markers = {line.get_color(): line.get_marker() for line in axes.get_lines()}
        starts = {line.get_markevery()[0] for line in axes.get_lines()}
        assert markers == {method_style(name).colour: method_style(name).marker for name in names}
        assert len(starts) == len(names)  # so that lines upon each other show both markers


def test_solutions_that_sft_trains_on_do_not_count_as_rollouts(curves):
    sft = curves.replace({"variant": {"grpo": "sft"}})
    figure = figure_training.plot(sft, ["a"], ["sft", "geosd"])
    points = [
        {line.get_color(): len(line.get_xydata()) for line in axes.get_lines()}
        for axes in figure.axes
    ]
    yellow, orange = method_style("sft").colour, method_style("geosd").colour
    assert points == [{yellow: 1, orange: 3}, {yellow: 3, orange: 3}, {yellow: 3, orange: 3}]
