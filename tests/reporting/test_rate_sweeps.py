"""Tables and figures over the learning rate, against pandas on scores made up for them."""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import to_hex

from geosd.reporting import figure_rates, table_rates
from geosd.reporting.id_ood_plane import FRAME
from geosd.reporting.method_style import method_style, method_style_rate
from geosd.reporting.run_accuracies import rate_run_accuracies
from geosd.scores.rate_selection import COLLAPSE, rate_above
from geosd.scores.tidy import COLUMNS

RATES = (1e-6, 3e-6, 1e-5, 3e-5, 1e-4, 3e-4)
MODELS = ("mini-qwen3", "mini-llama")
BASE = {"id": 45.0, "ood_avg": 40.0}
GAINS = {  # over pi_0 by rate, in distribution; out of it half as much
    "grpo": (0, 1, 3, 9, 26, 40),
    "fwdkl": (0, 1, 0, -12, -35, -44),
    "revkl": (0, 2, 6, 18, 45, -30),
    "geosd": (0, 1, 2, 3, 6, 1),
    "geosd_plain": (0, 0, 1, 3, 5, 6),
}
SELECTED = {
    "mini-qwen3": dict.fromkeys(GAINS, 3e-5) | {"grpo": 3e-4, "fwdkl": 1e-6},
    "mini-llama": dict.fromkeys(GAINS, 1e-5) | {"revkl": 2e-4},
}


def run_of(variant, rate):
    return f"{variant}-learning_rate_{rate}"


POINTS = {
    model: [
        {"run": run_of(variant, rate), "variant": variant, "learning_rate": rate}
        for variant in GAINS
        for rate in RATES[::-1]
    ]
    for model in MODELS
}


@pytest.fixture(scope="module")
def scores() -> pd.DataFrame:
    draw, rows = np.random.default_rng(4), []
    for model in MODELS:
        gains = {run_of(v, r): g for v, of in GAINS.items() for r, g in zip(RATES, of, strict=True)}
        for run, gain in {"pi_0": 0, **gains}.items():
            for seed in range(3):
                noise = draw.normal(0, 0.5 + abs(gain) / 10, 2)
                for benchmark, share, off in (("id", 1, noise[0]), ("ood_avg", 0.5, noise[1])):
                    split = "ID" if benchmark == "id" else "OOD"
                    value = BASE[benchmark] + share * gain + off
                    rows.append((model, run, seed, 0, benchmark, split, "avg@k", 16, value))
    return pd.DataFrame(rows, columns=list(COLUMNS["scores"]))


def changes(scores, model, run, benchmark) -> np.ndarray:
    """Changes of a run from the base model of its seed."""
    return values(scores, model, run, benchmark) - values(scores, model, "pi_0", benchmark)


def values(scores, model, run, benchmark) -> np.ndarray:
    """Accuracies of a run by seed, straight from the tidy rows."""
    rows = scores.query("model == @model and variant == @run and benchmark == @benchmark")
    return rows["value"].to_numpy()


def cells(table) -> pd.DataFrame:
    """A table's cells: a row a method, a column a key."""
    keys = [column.key for column in table.columns]
    return pd.DataFrame([row.cells for row in table.rows], [r.label for r in table.rows], keys)


@pytest.fixture(scope="module")
def around(scores):
    return cells(table_rates.build(scores, MODELS, POINTS, SELECTED))


@pytest.mark.parametrize(("step", "rate"), [(".below", 1e-5), ("", 3e-5), (".above", 1e-4)])
@pytest.mark.parametrize(("key", "benchmark"), [("id", "id"), ("ood_avg", "ood_avg")])
def test_accuracies_stand_at_the_selected_rate_and_its_neighbours(
    scores, around, step, rate, key, benchmark
):
    cell = around.loc["GeoSD", f"mini-qwen3.{key}{step}"]
    runs = values(scores, "mini-qwen3", run_of("geosd", rate), benchmark)
    assert (cell.value, cell.sd) == pytest.approx((runs.mean(), runs.std(ddof=1)))


def test_where_the_grid_ends_or_has_no_such_rate_cells_are_empty(around):
    assert around.loc["FwdKL", "mini-qwen3.learning_rate"].value == 1e-6
    assert around.loc["FwdKL", "mini-qwen3.id.below"].value is None
    assert around.loc["FwdKL", "mini-qwen3.id"].value is not None
    assert around.loc["GRPO", "mini-qwen3.ood_avg.above"].value is None
    # 2e-4 is no rate of the grid; 3e-4 and 1e-4 are half a decade from it, not exactly.
    revkl = around.loc["RevKL"]
    assert revkl["mini-llama.learning_rate"].text == "2.0e-04"
    assert revkl["mini-llama.id"].value is None


def test_the_base_model_is_the_first_row(scores, around):
    assert around.index[0] == "π₀"
    runs = values(scores, "mini-llama", "pi_0", "ood_avg")
    cell = around.loc["π₀", "mini-llama.ood_avg"]
    assert (cell.value, cell.sd) == pytest.approx((runs.mean(), runs.std(ddof=1)))


def test_a_collapse_is_a_run_ten_points_below_the_base_model_of_its_seed(scores, around):
    for (model, rates), (variant, label) in itertools.product(
        SELECTED.items(), {"fwdkl": "FwdKL", "revkl": "RevKL", "geosd": "GeoSD"}.items()
    ):
        words = []
        for rate in RATES:
            if not 1 / 4 < rate / rates[variant] < 4:
                continue
            gone = np.zeros(3, bool)
            for name in ("id", "ood_avg"):
                base = values(scores, model, "pi_0", name)
                gone |= values(scores, model, run_of(variant, rate), name) <= base - 10
            words += [f"{method_style_rate(rate)}: {gone.sum()} of 3"] if gone.any() else []
        assert around.loc[label, f"{model}.collapse"].text == (", ".join(words) or "no"), label
    assert around.loc["RevKL", "mini-llama.collapse"].text == "3e-4: 3 of 3"
    assert around.loc["GeoSD", "mini-qwen3.collapse"].text == "no"


def test_one_run_out_of_distribution_is_a_collapse_and_exactly_ten_points_are(scores):
    exact = values(scores, "mini-qwen3", "pi_0", "ood_avg")[1] - COLLAPSE
    at = scores.eval("model == 'mini-qwen3' and seed == 1 and benchmark == 'ood_avg'")
    at &= scores["variant"] == run_of("geosd", 3e-5)
    for value, counted in ((exact - 1e-6, 1), (exact + 1e-6, 0)):
        changed = scores.assign(value=scores["value"].mask(at, value))
        runs, _ = rate_run_accuracies(changed, "mini-qwen3", POINTS["mini-qwen3"])
        of_geosd = runs[(runs["variant"] == "geosd") & (runs["learning_rate"] == 3e-5)]
        assert of_geosd["collapsed"].sum() == counted


def test_half_a_decade_is_a_step_of_a_grid_in_round_numbers():
    steps = [rate_above(RATES, a, 0.5) for a in RATES]
    assert steps == [*RATES[1:], None]
    assert rate_above(RATES, 1e-5, -0.5) == 3e-6 and rate_above(RATES, 1e-5) == 1e-5
    assert rate_above((1e-6, 2e-6, 3.9e-6), 1e-6, 0.5) == 3.9e-6
    assert rate_above((1e-6, 2e-6, 4e-6), 1e-6, 0.5) is None, "4 is more than 10^0.6"


def test_learning_rates_are_short():
    rates = (3e-8, 1e-7, 3e-7, 2.5e-6, 1e-5, 0.001)
    assert [*map(method_style_rate, rates)] == ["3e-8", "1e-7", "3e-7", "2.5e-6", "1e-5", "1e-3"]


@pytest.fixture(scope="module")
def plane(scores):
    figure = figure_rates.plot(scores, MODELS, POINTS, SELECTED)
    figure.draw_without_rendering()
    return figure


def test_a_path_leads_from_the_base_model_through_the_rates(scores, plane):
    reference, divergence, geosd = plane.axes[0], plane.axes[2], plane.axes[4]
    for axes, variant in ((reference, "grpo"), (divergence, "revkl"), (geosd, "geosd")):
        at = ["pi_0", *(run_of(variant, rate) for rate in RATES)]
        path = [
            [changes(scores, "mini-qwen3", run, name).mean() for name in ("id", "ood_avg")]
            for run in at
        ]
        colour = method_style(variant).colour.lower()
        lines = [line for line in axes.lines if to_hex(line.get_color()) == colour]
        assert any(
            line.get_xydata().shape == (7, 2) and np.allclose(line.get_xydata(), path)
            for line in lines
        ), variant


def test_a_row_shows_its_methods_in_colour_and_all_others_in_grey(plane):
    for axes, own in zip(plane.axes[::2], (1, 2, 2), strict=True):
        paths = [line for line in axes.lines if len(line.get_xydata()) == 7]
        grey = [
            line for line in paths if len(set(to_hex(line.get_color())[i] for i in (1, 3, 5))) == 1
        ]
        drawn = [line for line in paths if line.get_zorder() == figure_rates.PATH]
        assert len(drawn) == own and len(paths) == len(GAINS)
        assert len(grey) >= len(GAINS) - own


def test_methods_that_share_a_marker_differ_in_dashes(plane):
    divergence = plane.axes[2]
    drawn = [line for line in divergence.lines if line.get_zorder() == figure_rates.PATH]
    assert len({line.is_dashed() for line in drawn}) == 2


def test_the_region_of_collapse_begins_ten_points_below_the_base_model(plane):
    for axes in plane.axes:
        boxes = [patch.get_bbox() for patch in axes.patches if hasattr(patch, "get_bbox")]
        assert -10 in {box.x1 for box in boxes} and -10 in {box.y1 for box in boxes}


def test_the_frame_ends_where_the_runs_that_did_not_collapse_do(plane):
    (left, right), (low, high) = plane.axes[0].get_xlim(), plane.axes[0].get_ylim()
    assert -1.2 * FRAME < left and right < 1.2 * FRAME and -1.2 * FRAME < low and high < 8


def test_selected_points_have_a_black_edge_and_all_methods_are_named(plane):
    edged = [
        [line for line in axes.lines if line.get_mec() == "black" and line.get_mew() > 0.5]
        for axes in plane.axes
    ]
    assert [len(lines) for lines in edged] == [1, 1, 2, 1, 2, 2], "2e-4 is not in the grid"
    names = [text.get_text() for text in plane.legends[0].get_texts()]
    assert names[:5] == [method_style(name).label for name in GAINS]


def test_the_legend_of_one_model_fits_its_column(scores):
    figure = figure_rates.plot(scores, MODELS[:1], POINTS, SELECTED)
    figure.draw_without_rendering()
    (legend,) = figure.legends
    box = legend.get_window_extent()
    assert 0 <= box.x0 and box.x1 <= figure.bbox.x1


@pytest.mark.parametrize("build", [table_rates.build, figure_rates.plot])
def test_a_study_without_base_is_refused_with_a_hint(scores, build):
    with pytest.raises(ValueError, match="(?s)pi_0 has no score on .*Hint:"):
        build(scores[scores["variant"] != "pi_0"], MODELS, POINTS, SELECTED)
